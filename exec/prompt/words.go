package prompt

import "strings"

// words holds the words that prompts are made of: short, common English words without capitals.
// In most vocabularies a word after a space is one token. A calibration measures which words a
// server's tokenizer really keeps whole.
var words = strings.Fields(`
time people water house world school family night money story
point study month right hand place case week company system
program question work government number home room mother area
book eye job word business issue side kind head service friend
father power hour game line end member law car city community
name president team minute idea kid body information back parent
face others level office door health person art war history party
result change morning reason research girl guy moment air teacher
force education foot boy age policy music market sense nation plan
college interest death experience effect use class control field
development role effort rate heart drug show leader light voice
wife police mind price report decision son view relationship town
road arm difference value building action season society tax
director position player record paper space ground form event
official matter center couple site project activity star table
need court oil situation cost industry figure street image phone
data picture practice piece land product doctor wall patient
worker news test movie north love support technology step baby
computer type attention film tree source organization hair look
window culture chance brother energy period course summer plant
opportunity term letter condition choice rule daughter south
husband floor campaign material population call economy hospital
church risk fire future bank defense weight bill red blue green
small large early young strong white black open free long high
low real best better great good new old big next last public able
`)
