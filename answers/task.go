package answers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Task is a built-in set of questions with exact answers. It checks that an engine works, and does
// not rank models.
type Task struct {
	Name  string
	Doc   string // one line
	Match string // rule that compares an answer with the right answer
	write func(r *rand.Rand) Item
	solve func(question, context string) (string, bool)
}

// Item is one question of a task. In a long prompt, filler words stand before and after Fact.
// Without a Fact, they stand before Question.
type Item struct {
	Head, Fact, Question string
	Depth                float64 // place of Fact in the filler, from 0 (beginning) to 1 (end)
	Answer               string
}

// Prompt returns the text of the item with the fact between two texts of filler words. Each filler
// word has a separator before it.
func (i Item) Prompt(before, after string) string {
	if i.Fact == "" {
		return i.Head + before + after + i.Question
	}
	return i.Head + before + i.Fact + after + i.Question
}

// Want returns the right answer as JSON.
func (i Item) Want() json.RawMessage {
	raw, _ := json.Marshal(i.Answer) // text always can be
	return raw
}

// TaskPrefix is the beginning of the name of a built-in data set.
const TaskPrefix = "builtin:"

// Tasks lists the tasks in the order of the documentation.
var Tasks = []Task{
	{"recall", "a code that stands at 10 to 90 % of the prompt", "contains", recall, recalled},
	{"arithmetic", "a sum, a difference or a product of two numbers of two digits", "number", arithmetic, computed},
	{"copy", "a line of words to be repeated with one of them replaced", "contains", copying, copied},
	{"table", "a value to be found in a table of eight rows", "number", table, looked},
	{"json", "a record to be written as JSON", "json_schema", record, recorded},
}

// FindTask returns the task of that name.
func FindTask(name string) (Task, bool) {
	for _, t := range Tasks {
		if t.Name == name {
			return t, true
		}
	}
	return Task{}, false
}

// Item returns item n of the task. The same seed gives the same items.
func (t Task) Item(seed int64, n int) Item {
	return t.write(rand.New(rand.NewPCG(uint64(seed), uint64(n)<<8^uint64(len(t.Name)))))
}

// Every prompt of a task begins with fillerHead, and its question begins with asking. Solve
// recognises the prompts of tasks by these two texts.
const (
	fillerHead = "Read the notes. They may hold nothing of use.\nNotes:"
	asking     = "\n\nQuestion: "
)

// Solve answers the prompt of a task, as the built-in server does. It reads only the given share of
// the context, from the beginning. ok is false if the prompt is not from a task.
func Solve(prompt string, share float64) (answer string, ok bool) {
	if !strings.HasPrefix(prompt, fillerHead) {
		return "", false
	}
	at := strings.LastIndex(prompt, asking)
	if at < 0 {
		return "", false
	}
	question, context := prompt[at+len(asking):], prompt[:at]
	context = context[:int(share*float64(len(context)))]
	for _, t := range Tasks {
		if answer, ok := t.solve(question, context); ok {
			return answer, true
		}
	}
	return "", false
}

var nouns = strings.Fields("time people water house world school family night money story point study month hand place case week " +
	"company system program work number home room mother area book eye job word business side kind head service friend father power " +
	"hour game line end member law car city lamp team minute idea body back parent face level office door health person art war history")

func noun(r *rand.Rand) string { return nouns[r.IntN(len(nouns))] }

func number(r *rand.Rand) int { return 10 + r.IntN(90) }

func recall(r *rand.Rand) Item {
	name := noun(r)
	code := fmt.Sprintf("%d-%d-%d", number(r), number(r), number(r))
	return Item{
		Head: fillerHead, Fact: fmt.Sprintf("\nThe code of the %s is %s.\n", name, code), Depth: float64(1+r.IntN(9)) / 10,
		Question: asking + fmt.Sprintf("What is the code of the %s? Answer with the code alone.", name), Answer: code,
	}
}

var recallQuestion = regexp.MustCompile(`^What is the code of the (\w+)\?`)

func recalled(question, context string) (string, bool) {
	m := recallQuestion.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	_, rest, found := strings.Cut(context, "The code of the "+m[1]+" is ")
	code, _, whole := strings.Cut(rest, ".")
	if !found || !whole {
		return "I do not know.", true
	}
	return code, true
}

func arithmetic(r *rand.Rand) Item {
	a, b := number(r), number(r)
	signs, results := []string{"+", "-", "*"}, []int{a + b, a - b, a * b}
	i := r.IntN(3)
	return Item{Head: fillerHead, Question: asking + fmt.Sprintf("What is %d %s %d? Answer with the number alone.", a, signs[i], b), Answer: strconv.Itoa(results[i])}
}

var arithmeticQuestion = regexp.MustCompile(`^What is (\d+) ([-+*]) (\d+)\?`)

func computed(question, _ string) (string, bool) {
	m := arithmeticQuestion.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	a, _ := strconv.Atoi(m[1])
	b, _ := strconv.Atoi(m[3])
	return strconv.Itoa(map[string]int{"+": a + b, "-": a - b, "*": a * b}[m[2]]), true
}

func copying(r *rand.Rand) Item {
	var line []string
	for range 12 {
		line = append(line, noun(r))
	}
	old, fresh := line[r.IntN(len(line))], noun(r)
	text := strings.Join(line, " ")
	return Item{
		Head:     fillerHead,
		Question: asking + fmt.Sprintf("Repeat this line with every %q replaced by %q. Write nothing else.\n%s", old, fresh, text),
		Answer:   replaced(text, old, fresh),
	}
}

func replaced(text, old, fresh string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if w == old {
			words[i] = fresh
		}
	}
	return strings.Join(words, " ")
}

var copyQuestion = regexp.MustCompile(`^Repeat this line with every "(\w+)" replaced by "(\w+)"\. Write nothing else\.\n(.*)$`)

func copied(question, _ string) (string, bool) {
	m := copyQuestion.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	return replaced(m[3], m[1], m[2]), true
}

func table(r *rand.Rand) Item {
	rows := map[string][2]int{}
	for len(rows) < 8 {
		rows[noun(r)] = [2]int{number(r), number(r)}
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	sort.Strings(names)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	text := "\n| name | price | stock |\n"
	for _, name := range names {
		text += fmt.Sprintf("| %s | %d | %d |\n", name, rows[name][0], rows[name][1])
	}
	name, column := names[r.IntN(len(names))], r.IntN(2)
	return Item{
		Head: fillerHead, Fact: text, Depth: float64(1+r.IntN(9)) / 10,
		Question: asking + fmt.Sprintf("By the table, what is the %s of %s? Answer with the number alone.", []string{"price", "stock"}[column], name),
		Answer:   strconv.Itoa(rows[name][column]),
	}
}

var tableQuestion = regexp.MustCompile(`^By the table, what is the (price|stock) of (\w+)\?`)

func looked(question, context string) (string, bool) {
	m := tableQuestion.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	for line := range strings.Lines(context) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 5 && strings.TrimSpace(cells[1]) == m[2] {
			return strings.TrimSpace(cells[map[string]int{"price": 2, "stock": 3}[m[1]]]), true
		}
	}
	return "I do not know.", true
}

func record(r *rand.Rand) Item {
	name, price, stock := noun(r), number(r), number(r)
	return Item{
		Head: fillerHead,
		Question: asking + fmt.Sprintf("Write a JSON object with the members name, price and stock for this, and nothing else: the %s costs %d, and there are %d.",
			name, price, stock),
		Answer: written(name, strconv.Itoa(price), strconv.Itoa(stock)),
	}
}

func written(name, price, stock string) string {
	return fmt.Sprintf(`{"name": %q, "price": %s, "stock": %s}`, name, price, stock)
}

var recordQuestion = regexp.MustCompile(`^Write a JSON object .*: the (\w+) costs (\d+), and there are (\d+)\.`)

func recorded(question, _ string) (string, bool) {
	m := recordQuestion.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	return written(m[1], m[2], m[3]), true
}
