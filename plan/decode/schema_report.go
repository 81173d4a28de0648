package decode

var reportBlock = &Block{
	Name: "report",
	Doc:  "The texts at the top of the report. They change no measurement and no verdict.",
	Attrs: []*Attr{
		{Name: "title", Type: "string", Computed: "the plan's name", Doc: "Title of the report."},
		{Name: "subtitle", Type: "string", Doc: "A line under the title."},
		{Name: "organization", Type: "string", Doc: "Who publishes the report."},
		{Name: "logo", Type: "path", Doc: "A picture for the report: PNG or JPEG, at most 64 KiB. The path is relative to the plan, and must be inside the repository."},
		{Name: "notes", Type: "list of strings", Doc: "Paragraphs for the first page of the report, such as what was left out and why."},
	},
}
