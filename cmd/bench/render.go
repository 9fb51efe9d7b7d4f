package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-bench/weir/reports/render"
	"github.com/weir-bench/weir/reports/runlog"
)

// showRun writes the files of a run's report beside its data and the table to standard output.
func showRun(dir string, s Streams) error {
	v, err := viewOf(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(writeMarkdown(v, dir), writeHTML(v, dir)); err != nil {
		return err
	}
	if err := render.Terminal(s.Out, v, render.TerminalOptions{Width: s.Width, Color: s.Color}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Err, "report: %s\n", filepath.Join(dir, runlog.HTMLFile))
	return err
}

func viewOf(dir string) (render.View, error) {
	run, err := runlog.Open(dir)
	if err != nil {
		return render.View{}, err
	}
	return render.NewView(run), nil
}

func writeMarkdown(v render.View, dir string) error {
	return replace(filepath.Join(dir, runlog.MarkdownFile), render.Markdown(v))
}

func writeHTML(v render.View, dir string) error {
	page, err := render.HTML(v)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, runlog.HTMLFile), page)
}

// replace writes a file whole or not at all.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// report renders a run again from its files.
func report(_ context.Context, o ReportOptions) error {
	v, err := viewOf(o.Dir)
	if err != nil {
		return err
	}
	dir := o.OutDir
	if dir == "" {
		dir = o.Dir
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the report: %w", err)
	}
	switch o.Format {
	case "md":
		return writeMarkdown(v, dir)
	case "html":
		return writeHTML(v, dir)
	case "json":
		return copyResults(o.Dir, o.Streams.Out)
	case "all":
		if err := errors.Join(writeMarkdown(v, dir), writeHTML(v, dir)); err != nil {
			return err
		}
	}
	show := render.MainFigures
	if o.Figures == "all" {
		show = render.AllFigures
	}
	return render.Terminal(o.Streams.Out, v, render.TerminalOptions{Width: o.Streams.Width, Color: o.Streams.Color, Show: show})
}

func copyResults(dir string, to io.Writer) error {
	f, err := os.Open(filepath.Join(dir, runlog.ResultsFile))
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
