// Package render is the press: it turns a run directory into a terminal table, Markdown, LaTeX and one offline HTML
// page. One view (View) holds every text and every formatted number, so that all formats say the same; the renderers only
// lay it out and escape it.
//
// Rules it keeps: a row with wrong answers shows INVALID and no speed figure; what was not measured shows as n/a or as a
// bound, with its reason in the notes; names are shown as they are and are never markup.
//
// May import: reports/runlog, reports/stats, the standard library, tablewriter.
package render
