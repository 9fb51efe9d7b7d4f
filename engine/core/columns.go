package core

// Columns holds n records as columns. All non-nil columns have the same length n; Off has n+1 entries.
//
// The owner of a Columns value owns its slices. Nothing in it is safe for concurrent use.
type Columns struct {
	// Keys are the routing keys.
	Keys []uint64
	// Times are the intended times in nanoseconds since the start of the run.
	Times []int64
	// Vals are the values; nil where the job has none.
	Vals []int64
	// Off are n+1 offsets into Ext; nil where the job has no payload.
	Off []uint32
	// Ext are the payload bytes.
	Ext []byte
}

// Len returns the number of records.
func (c *Columns) Len() int { return len(c.Keys) }

// Reset empties c and keeps its memory.
func (c *Columns) Reset() {
	c.Keys, c.Times, c.Vals, c.Off, c.Ext = c.Keys[:0], c.Times[:0], c.Vals[:0], c.Off[:0], c.Ext[:0]
}

// Slice returns records [from, to) of c. It shares memory with c; its Off still indexes the whole Ext.
func (c *Columns) Slice(from, to int) Columns {
	s := Columns{Keys: c.Keys[from:to], Times: c.Times[from:to]}
	if len(c.Vals) > 0 {
		s.Vals = c.Vals[from:to]
	}
	if len(c.Off) > 0 {
		s.Off, s.Ext = c.Off[from:to+1], c.Ext
	}
	return s
}

// Payload returns the payload of record i, or nil where there is none. It shares memory with c.
func (c *Columns) Payload(i int) []byte {
	if len(c.Off) == 0 {
		return nil
	}
	return c.Ext[c.Off[i]:c.Off[i+1]]
}

// Append adds record i of src to c. Columns that src lacks are left out, so all appended records of one c must come
// from sources with the same columns.
func (c *Columns) Append(src *Columns, i int) {
	c.Keys = append(c.Keys, src.Keys[i])
	c.Times = append(c.Times, src.Times[i])
	if len(src.Vals) > 0 {
		c.Vals = append(c.Vals, src.Vals[i])
	}
	if len(src.Off) > 0 {
		c.AppendPayload(src.Payload(i))
	}
}

// AppendPayload adds one payload; the caller adds the other columns of the record itself.
func (c *Columns) AppendPayload(p []byte) {
	if len(c.Off) == 0 {
		c.Off = append(c.Off, 0)
	}
	c.Ext = append(c.Ext, p...)
	c.Off = append(c.Off, uint32(len(c.Ext)))
}

// AppendAll adds all records of src to c.
func (c *Columns) AppendAll(src *Columns) {
	c.Keys = append(c.Keys, src.Keys...)
	c.Times = append(c.Times, src.Times...)
	c.Vals = append(c.Vals, src.Vals...)
	if len(src.Off) == 0 {
		return
	}
	if len(c.Off) == 0 {
		c.Off = append(c.Off, 0)
	}
	base, start := uint32(len(c.Ext)), src.Off[0]
	c.Ext = append(c.Ext, src.Ext[start:src.Off[len(src.Off)-1]]...)
	for _, o := range src.Off[1:] {
		c.Off = append(c.Off, base+o-start)
	}
}
