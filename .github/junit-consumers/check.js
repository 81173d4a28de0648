// Parses each file in the same way as two consumers, and counts what they would show:
// dorny/test-reporter with xml2js (src/parsers/java-junit/java-junit-parser.ts),
// mikepenz/action-junit-report with xml-js (src/testParser.ts).
const fs = require('fs')
const path = require('path')
const xml2js = require('xml2js')
const xmljs = require('xml-js')

const list = x => (x === undefined ? [] : Array.isArray(x) ? x : [x])

async function dorny(text) {
  const doc = await xml2js.parseStringPromise(text)
  const count = {tests: 0, failures: 0, errors: 0, skipped: 0}
  for (const suite of list(doc.testsuites.testsuite)) {
    suite.$.name.trim()
    for (const c of list(suite.testcase)) {
      c.$.name.trim()
      if (Number.isNaN(parseFloat(c.$.time))) throw new Error(`time of ${c.$.name}`)
      count.tests++
      if (c.failure) count.failures++
      else if (c.error) count.errors++
      else if (c.skipped) count.skipped++
    }
  }
  return count
}

function mikepenz(text) {
  const doc = JSON.parse(xmljs.xml2json(text, {compact: true}))
  const count = {tests: 0, failures: 0, errors: 0, skipped: 0}
  for (const suite of list(doc.testsuites.testsuite)) {
    for (const c of list(suite.testcase)) {
      const a = c._attributes
      if (!a.file || !(Number(a.line) >= 1)) throw new Error(`${a.name} has no file and line`)
      count.tests++
      for (const [kind, what] of [['failure', 'failures'], ['error', 'errors'], ['skipped', 'skipped']]) {
        if (c[kind] === undefined) continue
        count[what]++
        if (kind !== 'skipped' && !c[kind]._attributes.message) throw new Error(`${a.name}: no message`)
      }
    }
  }
  return count
}

async function main() {
  for (const file of process.argv.slice(2)) {
    const text = fs.readFileSync(file, 'utf8')
    const root = xmljs.xml2js(text, {compact: true}).testsuites._attributes
    const name = path.basename(file, '.xml')
    for (const [consumer, count] of [['xml2js', await dorny(text)], ['xml-js', mikepenz(text)]]) {
      for (const what of ['tests', 'failures', 'errors', 'skipped']) {
        if (count[what] !== Number(root[what] || 0)) {
          throw new Error(`${name}: ${consumer} counts ${count[what]} ${what}, the file says ${root[what]}`)
        }
      }
      const bad = count.failures + count.errors
      if (count.tests === 0 || (name === 'green') !== (bad === 0) && !name.startsWith('pass')) {
        throw new Error(`${name}: ${consumer} shows ${bad} of ${count.tests} as failed`)
      }
      console.log(`${name}: ${consumer} ${JSON.stringify(count)}`)
    }
  }
}

main().catch(e => {
  console.error(e.message)
  process.exit(1)
})
