package render

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// svg collects the elements of one drawing. Every text goes through html.EscapeString; styles are classes of the page, so
// that light and dark need one drawing.
type svg struct {
	b             strings.Builder
	width, height float64
}

func newSVG(width, height float64, title string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(&s.b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(title))
	return s
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

func (s *svg) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, html.EscapeString(text))
}

func (s *svg) rect(x, y, w, h float64, class, title string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s</title></rect>`, x, y, w, h, class, html.EscapeString(title))
}

// point is a place in a drawing; a NaN ordinate breaks the path.
type point struct{ x, y float64 }

// path draws the points; step draws horizontal-then-vertical, as fits figures of intervals.
func (s *svg) path(points []point, class, title string) {
	var d strings.Builder
	pen := false
	for _, p := range points {
		switch {
		case math.IsNaN(p.y):
			pen = false
		case pen:
			fmt.Fprintf(&d, "L%.1f %.1f", p.x, p.y)
		default:
			fmt.Fprintf(&d, "M%.1f %.1f", p.x, p.y)
			pen = true
		}
	}
	if d.Len() > 0 {
		fmt.Fprintf(&s.b, `<path d="%s" class="%s"><title>%s</title></path>`, d.String(), class, html.EscapeString(title))
	}
}

func (s *svg) String() string { return s.b.String() + "</svg>" }

// logAxis maps a positive quantity to the ordinate between bottom and top, by its logarithm.
type logAxis struct{ low, high, top, bottom float64 }

// newLogAxis covers all values with whole 1-2-5 steps; not ok when there is no positive value.
func newLogAxis(values []float64, top, bottom float64) (a logAxis, ok bool) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if high < low {
		return a, false
	}
	a = logAxis{low: stepDown(low), high: stepUp(high), top: top, bottom: bottom}
	if a.high/a.low < 10 {
		a.high = stepUp(a.low * 9.9)
	}
	return a, true
}

func stepDown(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if v >= m*decade {
			return m * decade
		}
	}
	return decade
}

func stepUp(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*decade*(1+1e-9) {
			return m * decade
		}
	}
	return 10 * decade
}

func (a logAxis) y(v float64) float64 {
	if math.IsNaN(v) {
		return v
	}
	v = min(max(v, a.low), a.high)
	return a.bottom - (a.bottom-a.top)*math.Log(v/a.low)/math.Log(a.high/a.low)
}

// draw puts the grid and its labels: each decade with a label, its halves 2 and 5 too when there are few decades.
func (a logAxis) draw(s *svg, left, right float64) {
	few := a.high/a.low <= 300
	for decade := math.Pow(10, math.Floor(math.Log10(a.low)+1e-9)); decade <= a.high*1.001; decade *= 10 {
		for m := 1.0; m < 10; m++ {
			v := m * decade
			if v < a.low*0.999 || v > a.high*1.001 {
				continue
			}
			major := m == 1 || few && (m == 2 || m == 5)
			class := "grid minor"
			if major {
				class = "grid"
				s.text(left-8, a.y(v)+4, "end", "tick", delayLabel(v))
			}
			s.line(left, a.y(v), right, a.y(v), class)
		}
	}
}

// delayLabel shows milliseconds in the unit that reads best on an axis.
func delayLabel(ms float64) string {
	switch {
	case ms >= 999.5:
		return trimmed(ms/1000) + " s"
	case ms < 0.9995:
		return trimmed(ms*1000) + " µs"
	}
	return trimmed(ms) + " ms"
}

func trimmed(v float64) string {
	s := fmt.Sprintf("%.2f", v)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// niceStep returns a step of 1, 2 or 5 times a power of ten that divides span into at most n parts.
func niceStep(span float64, n int) float64 { return stepUp(span / float64(n)) }
