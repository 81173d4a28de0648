package text

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tokgate/tokgate/internal/must"
)

func TestLine(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "plain", "plain"},
		{"nothing", "", ""},
		{"words", "some ~ words", "some ~ words"},
		{"a space before", " a", "a"},
		{"a space behind", "a ", "a"},
		{"two spaces", "a  b", "a b"},
		{"white space", "  a\t\tb\r\n\nc\u00a0d\u2028e ", "a b c d e"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor", "a\x1b[2J\x1b[?25lb", "ab"},
		{"title ended by BEL", "\x1b]0;title\x07x", "x"},
		{"title ended by ST", "\x1b]0;title\x1b\\x", "x"},
		{"link", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"a title without end keeps the rest", "\x1b]0;title", "0;title"},
		{"charset", "\x1b(Bx", "x"},
		{"C1 CSI", "\u009b31mx", "x"},
		{"lone ESC", "x\x1b", "x"},
		{"ESC before text that is not ASCII", "\x1b漢", "漢"},
		{"broken CSI", "\x1b[31\nx", "x"},
		{"controls", "a\x00b\x07c\x7fd\u0085e", "abcd e"}, // a line break becomes a space
		{"invalid UTF-8", "a\xff\xfeb", "a\ufffd\ufffdb"},
		{"surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"zero width", "a\u200bb\ufeffc", "abc"},
		{"noncharacter", "a\ufffeb\U0010ffffc", "abc"},
		{"wide", "漢字🚀é", "漢字🚀é"},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("%s: Line(%q)", tt.name, tt.in), tt.want, Line(tt.in))
	}
}

func TestBlock(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"lines", "a\nb\r\nc\rd", "a\nb\nc\nd"},
		{"blank lines inside stay", "\n\na\n\nb\n\n", "a\n\nb"},
		{"indent stays, trailing space goes", "x\n  a \t\nb", "x\n  a\nb"},
		{"tab", "a\tb", "a    b"},
		{"colour", "\x1b[31ma\x1b[0m\nb", "a\nb"},
		{"CR, escape, LF", "a\r\x1b[0m\nb", "a\nb"},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("%s: Block(%q)", tt.name, tt.in), tt.want, Block(tt.in))
	}
}

func TestInert(t *testing.T) {
	tests := []struct{ in, want string }{
		{"::error::x", ": :error::x"},
		{"  ::set-output name=x::y", "  : :set-output name=x::y"},
		{"\u00a0::x", "\u00a0: :x"},
		{"a ::error::x", "a ::error::x"}, // a command must be at the start of a line
		{":x", ":x"},
		{"##[error]x", "# #[error]x"},
		{"log: ##[group]", "log: # #[group]"},
		{"##vso[task.setvariable]", "# #vso[task.setvariable]"},
		{"##VSO[task.setvariable]", "# #VSO[task.setvariable]"},
		{"##teamcity[x]", "# #teamcity[x]"},
		{"###[x]", "## #[x]"},
		{"##[a]##[b]", "# #[a]# #[b]"},
		{"## heading", "## heading"},
		{"", ""},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("Inert(%q)", tt.in), tt.want, Inert(tt.in))
	}
}

func TestBytes(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "…"}, {"abcdef", 5, "ab…"}, {"漢字", 6, "漢字"}, {"漢字漢", 8, "漢…"}, {"", 3, ""},
	}
	for _, tt := range tests {
		got := Bytes(tt.in, tt.n)
		must.Hold(t, got == tt.want && len(got) <= tt.n, "Bytes(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
	}
}

func TestTail(t *testing.T) {
	must.Same(t, "Tail", "abc", Tail("abc", 3))
	// The text has 40 bytes, but only 31 are allowed. The mark of the cut takes 10 bytes, which
	// leaves 21 bytes at the end of the text. They begin in the second line, so only the third line
	// is shown.
	in := "0123456789\n" + "abcdefghi\n" + "0123456789012345678"
	got, want := Tail(in, 31), "… (cut)\n0123456789012345678"
	must.Hold(t, got == want, "Tail = %q, want %q", got, want)
	// If there is no line break nearby, the text is cut between two characters.
	if got := Tail(strings.Repeat("漢", 100), 32); !utf8.ValidString(got) || len(got) > 32 {
		t.Errorf("Tail = %q", got)
	}
}

func TestWidth(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0}, {"abc", 3}, {"é", 1}, {"e\u0301", 1}, {"漢字", 4}, {"ｱ", 1}, {"Ａ", 2}, {"한", 2}, {"🚀", 2}, {"…", 1}, {"█", 1}, {"∞", 1}, {"\u200b", 0},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("Width(%q)", tt.in), tt.want, Width(tt.in))
	}
}

func TestCutAndPad(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abcd", 1, "…"}, {"abcd", 0, ""},
		{"漢字", 4, "漢字"}, {"漢字", 3, "漢…"},
		{"漢字漢", 4, "漢…"}, // 漢 takes two cells, and … one
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("Cut(%q, %d)", tt.in, tt.width), tt.want, Cut(tt.in, tt.width))
	}
	must.Same(t, "Pad", "漢  |  漢|abc", Pad("漢", 4, false)+"|"+Pad("漢", 4, true)+"|"+Pad("abc", 2, true))
}

func TestWrap(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"a bb ccc", 4, "a bb/ccc"},
		{"a bb ccc", 8, "a bb ccc"},
		{"abcdefgh ij", 3, "abc/def/gh/ij"},
		{"漢字漢 a", 4, "漢字/漢 a"},
		{"漢字", 1, "漢/字"}, // a rune wider than the line gets a line of its own
		{"", 10, ""},
		{"\u0301", 10, "\u0301"},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("Wrap(%q, %d)", tt.in, tt.width), tt.want, strings.Join(Wrap(tt.in, tt.width), "/"))
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[31mx\x1b]0;a\x07::b\r\n##[c]漢\xff\u202e", 7)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 1 + (width%200+200)%200
		line := Line(s)
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) || !utf8.ValidString(line) {
			t.Errorf("Line(%q) = %q", s, line)
		}
		must.Same(t, fmt.Sprintf("Line(Line(%q))", s), line, Line(line))
		inert := Inert(line)
		must.Hold(t, Inert(inert) == inert && !strings.HasPrefix(strings.TrimSpace(inert), "::") && !strings.Contains(inert, "##["), "Inert(%q) = %q", line, inert)
		if cut := Cut(line, width); Width(cut) > width {
			t.Errorf("Cut(%q, %d) takes %d cells", line, width, Width(cut))
		}
		got, want := strings.Join(strings.Fields(strings.Join(Wrap(line, width), "")), ""), strings.Join(strings.Fields(line), "")
		must.Hold(t, got == want, "Wrap(%q, %d) holds %q", line, width, got)
		for l := range strings.SplitSeq(Block(s), "\n") {
			must.Hold(t, !strings.ContainsFunc(l, unicode.IsControl), "Block(%q) has the line %q", s, l)
		}
		err := xml.Unmarshal([]byte("<a><![CDATA["+strings.ReplaceAll(XML(s), "]]>", "]]]]><![CDATA[>")+"]]></a>"), new(struct{}))
		must.Hold(t, err == nil, "XML(%q): %v", s, err)
	})
}

func TestClock(t *testing.T) {
	tests := []struct {
		s    float64
		want string
	}{{-1, "0s"}, {0, "0s"}, {59.4, "59s"}, {59.6, "1m00s"}, {185, "3m05s"}, {3599.4, "59m59s"}, {7380, "2h03m"}}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("Clock(%v)", tt.s), tt.want, Clock(tt.s))
	}
}
