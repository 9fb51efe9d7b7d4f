package calc

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/weir-bench/weir/engine/model"
)

// RoundsOptions are what the choice of a number of rounds depends on besides the move itself.
type RoundsOptions struct {
	// SpikeWeight and DurationWeight say how much a second of waiting counts against a second of duration.
	SpikeWeight, DurationWeight float64
	// Peak is the longest wait that is wanted; 0: no target.
	Peak time.Duration
}

// Choice is a number of rounds by one of the forms of the model.
type Choice struct {
	Form   string  `json:"form"`
	Rounds int     `json:"rounds,omitempty"`
	Ideal  float64 `json:"ideal,omitempty"` // before rounding and limits
	Capped bool    `json:"capped,omitempty"`
	// Impossible says why there is no such number.
	Impossible string `json:"impossible,omitempty"`
}

// RoundsRow is what the model expects of one number of rounds.
type RoundsRow struct {
	Rounds                   int     `json:"rounds"`
	PeakMS                   float64 `json:"peak_ms"`
	DisruptionMS             float64 `json:"disruption_ms"`
	DurationMS               float64 `json:"duration_ms"`
	DelayAllRecordSeconds    float64 `json:"delay_all_record_s"`
	DelayMovingRecordSeconds float64 `json:"delay_moving_record_s"`
	// Chosen names the forms that recommend this row.
	Chosen []string `json:"chosen,omitempty"`
}

// RoundsAnswer is the answer of `bench model rounds` for one move.
type RoundsAnswer struct {
	Of         string      `json:"of,omitempty"` // cell and repetition, of a run
	TransferMS float64     `json:"transfer_ms"`
	Choices    []Choice    `json:"choices"`
	Rows       []RoundsRow `json:"rows"`
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Rounds works out the recommended numbers of rounds and the expectation for 1, 2, 4 … all groups and for each
// recommended number. A peak that no number of rounds keeps is part of the answer; bad parameters are an error that wraps
// model.ErrParameter.
func Rounds(m model.Migration, o RoundsOptions) (RoundsAnswer, error) {
	a, err := m.Transfer()
	if err != nil {
		return RoundsAnswer{}, err
	}
	out := RoundsAnswer{TransferMS: ms(a)}
	all, err := m.RoundsAllWait()
	if err != nil {
		return RoundsAnswer{}, err
	}
	moving, err := m.RoundsMovingWait(o.SpikeWeight, o.DurationWeight)
	if err != nil {
		return RoundsAnswer{}, err
	}
	out.Choices = []Choice{
		{Form: "everybody waits: N = a/c", Rounds: all.Rounds, Ideal: all.Ideal, Capped: all.Capped},
		{Form: "the moving groups wait: N = √(w·a·(1−ρ)/c)", Rounds: moving.Rounds, Ideal: moving.Ideal, Capped: moving.Capped},
	}
	if o.Peak > 0 {
		c := Choice{Form: fmt.Sprintf("peak of %v: N ≥ a/(L−c)", o.Peak)}
		switch p, err := m.RoundsForPeak(o.Peak); {
		case errors.Is(err, model.ErrPeakTarget):
			c.Impossible = err.Error()
		case err != nil:
			return RoundsAnswer{}, err
		default:
			c.Rounds, c.Ideal, c.Capped = p.Rounds, p.Ideal, p.Capped
		}
		out.Choices = append(out.Choices, c)
	}
	out.Rows, err = roundsRows(m, out.Choices)
	return out, err
}

// roundsRows merges the sweep with the recommended numbers, by rising N.
func roundsRows(m model.Migration, choices []Choice) ([]RoundsRow, error) {
	chosen := map[int][]string{}
	for _, c := range choices {
		if c.Rounds > 0 {
			chosen[c.Rounds] = append(chosen[c.Rounds], c.Form)
		}
	}
	var rows []RoundsRow
	for n, next := 1, 1; n <= m.Groups; n++ {
		if n != next && n != m.Groups && chosen[n] == nil {
			continue
		}
		if n == next {
			next *= 2
		}
		p, err := m.Predict(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, RoundsRow{n, ms(p.Peak), ms(p.Disruption), ms(p.Duration), p.DelayAllRecordSeconds, p.DelayMovingRecordSeconds, chosen[n]})
	}
	return rows, nil
}

// Write prints the answer for people.
func (a RoundsAnswer) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if a.Of != "" {
		fmt.Fprintf(t, "%s\n", a.Of)
	}
	fmt.Fprintf(t, "transfer without synchronisation: a = %.3g ms\n", a.TransferMS)
	for _, c := range a.Choices {
		switch {
		case c.Impossible != "":
			fmt.Fprintf(t, "%s\tnone: %s\n", c.Form, c.Impossible)
		case c.Capped:
			fmt.Fprintf(t, "%s\tN = %d (%.1f, capped)\n", c.Form, c.Rounds, c.Ideal)
		default:
			fmt.Fprintf(t, "%s\tN = %d (%.1f)\n", c.Form, c.Rounds, c.Ideal)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rounds\tpeak ms\tdisruption ms\tduration ms\tdelay, all wait (record·s)\tdelay, moving wait (record·s)\t")
	for _, r := range a.Rows {
		mark := ""
		if len(r.Chosen) > 0 {
			mark = " *"
		}
		fmt.Fprintf(t, "%d%s\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t\n", r.Rounds, mark, r.PeakMS, r.DisruptionMS, r.DurationMS, r.DelayAllRecordSeconds, r.DelayMovingRecordSeconds)
	}
	return t.Flush()
}
