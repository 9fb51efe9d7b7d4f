package operator

import "github.com/weir-bench/weir/engine/core"

// mapping keeps the records for which `where` holds and gives them a new key, value and payload; what is not given stays.
type mapping struct {
	where, key, value func(*env) int64
	row               []expr
	env               env
	payload           []byte
}

func parseMapping(spec *core.OperatorSpec) (*mapping, error) {
	p := readParams(spec, "where", "key", "value", "row")
	n := p.layout.names()
	m := &mapping{where: p.num("where", n), key: p.num("key", n), value: p.num("value", n), row: p.list("row", n)}
	return m, p.err
}

func (m *mapping) Process(c *Context, in *core.Columns) {
	e, out := &m.env, &c.Out
	for i := range in.Keys {
		e.rec[0] = recordAt(in, i)
		if m.where != nil && m.where(e) == 0 {
			continue
		}
		key := in.Keys[i]
		if m.key != nil {
			key = uint64(m.key(e))
		}
		out.Keys = append(out.Keys, key)
		out.Times = append(out.Times, in.Times[i])
		if m.value != nil {
			out.Vals = append(out.Vals, m.value(e))
		} else if len(in.Vals) > 0 {
			out.Vals = append(out.Vals, in.Vals[i])
		}
		if m.row != nil {
			m.payload = appendRow(m.payload[:0], m.row, e)
			out.AppendPayload(m.payload)
		} else if len(in.Off) > 0 {
			out.AppendPayload(in.Payload(i))
		}
	}
}
