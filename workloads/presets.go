package workloads

import "reflect"

// Preset is a workload with published parameters.
type Preset struct {
	Name   string
	Source string // where the parameters are from
	Note   string // what is chosen here because the source leaves it open
	Spec   Spec
}

// PresetByName returns the preset of a name, or false.
func PresetByName(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// complete returns s with its defaults, and with the fields that are zero taken
// from its preset.
// A kind of its own makes the fields that belong to the preset's kind void.
func (s Spec) complete() (Spec, *FieldError) {
	if s.Preset != "" {
		p, ok := PresetByName(s.Preset)
		if !ok {
			return s, &FieldError{"preset", "\"" + s.Preset + "\" is unknown", "one of " + presetNames()}
		}
		base := p.Spec
		if s.Kind != "" && s.Kind != base.Kind {
			base.Exponent, base.HotKeys, base.HotLoad, base.Shares = 0, 0, 0, nil
			if !synthetic(s.Kind) {
				base.Keys = 0
			}
		}
		if s.Arrivals.Kind != "" {
			base.Arrivals = Arrivals{}
			if s.Arrivals.Kind == ArriveNone || s.Arrivals.Kind == ArriveReplay {
				base.Rate = 0
			}
		}
		fillZero(reflect.ValueOf(&s).Elem(), reflect.ValueOf(base))
	}
	if s.Kind == "" {
		s.Kind = KindUniform
	}
	if s.Kind == KindReplay && s.Rate == 0 && s.Arrivals.Kind == "" {
		s.Arrivals.Kind = ArriveReplay
	}
	return s, nil
}

// fillZero sets each zero field of dst to that of src. Structs are taken field
// by field, but a struct with a kind of its own is taken whole.
func fillZero(dst, src reflect.Value) {
	for i := range dst.NumField() {
		d, f := dst.Field(i), src.Field(i)
		switch {
		case d.IsZero():
			d.Set(f)
		case d.Kind() == reflect.Struct && !ownKind(d, f):
			fillZero(d, f)
		}
	}
}

func ownKind(dst, src reflect.Value) bool {
	d := dst.FieldByName("Kind")
	return d.IsValid() && !d.IsZero() && d.String() != src.FieldByName("Kind").String()
}

func presetNames() string {
	names := ""
	for i, p := range Presets() {
		if i > 0 {
			names += ", "
		}
		names += p.Name
	}
	return names
}
