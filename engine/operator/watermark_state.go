package operator

// WatermarkState is where a source's watermarks stand: the highest event time so far and the last watermark.
type WatermarkState struct{ Highest, Last int64 }

// State returns where the watermarks stand.
func (w *Watermarks) State() WatermarkState { return WatermarkState{w.highest, w.last} }

// SetState lets the watermarks go on from there.
func (w *Watermarks) SetState(s WatermarkState) { w.highest, w.last = s.Highest, s.Last }
