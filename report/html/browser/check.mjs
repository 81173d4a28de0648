// Opens reports in headless Chromium at the widths of a phone, a tablet and a
// desktop, light and dark, and as printed pages, folded and unfolded. It fails on:
//
//   - console messages, network requests, a page wider than its window or its paper;
//   - a table that is wider than its place, a verdict's box that a page break can cut;
//   - labels of a chart that touch each other, leave the picture or are too pale, and
//     lines of a chart that leave the picture;
//   - a caption that does not belong to one chart, or names a value that the chart lacks;
//   - problems that axe-core finds, such as too little contrast;
//   - more pages, screens, words or bytes than limits.json allows a report.
//
//   node check.mjs [--shots DIR] REPORT.html...
//
// With --shots it leaves screenshots and PDFs in DIR. VIEWS="390 print" checks only some
// of the views. limits.json has limits by the folder or the name of the report.
// puppeteer-core and axe-core must be in NODE_PATH's first folder.
import { createRequire } from 'node:module'
import { readFileSync, mkdirSync, statSync } from 'node:fs'
import { resolve, basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(resolve(process.env.NODE_PATH ?? '.', 'x.js'))
const puppeteer = require('puppeteer-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const limits = JSON.parse(readFileSync(new URL('limits.json', import.meta.url), 'utf8'))

const args = process.argv.slice(2)
let shots = ''
if (args[0] === '--shots') {
  shots = args[1]
  args.splice(0, 2)
  mkdirSync(shots, { recursive: true })
}

// A4 without its margins, in CSS pixels.
const paper = { width: Math.round((210 - 24) * 96 / 25.4), height: Math.round((297 - 28) * 96 / 25.4) }
const desktop = { name: '1400', width: 1400, height: 900, scheme: 'light' }
const views = [
  desktop,
  { name: '1400-dark', width: 1400, height: 900, scheme: 'dark' },
  { name: '768', width: 768, height: 1024, scheme: 'light' },
  { name: '390', width: 390, height: 844, scheme: 'light', phone: true },
  { name: '390-dark', width: 390, height: 844, scheme: 'dark', phone: true },
  { name: 'print', ...paper, scheme: 'dark', print: true },
].filter(v => (process.env.VIEWS ?? v.name).split(' ').includes(v.name))

// geometry runs in the page. It finds what overlaps, what is cut, and what leaves its picture.
function geometry(printed, paperHeight) {
  const wrong = []
  const root = document.documentElement
  const shown = e => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest('.scroll, .source, .log'))
    wrong.push(`the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth} px: ${wide.slice(0, 3).map(e => e.tagName + '.' + (e.className.baseVal ?? e.className)).join(', ')}`)
  }
  for (const table of document.querySelectorAll('table')) {
    const place = table.closest('.scroll') ?? table.parentElement
    const over = table.getBoundingClientRect().right - place.getBoundingClientRect().right
    if (shown(table) && over > 1) wrong.push(`the table "${table.caption?.textContent ?? table.textContent.slice(0, 40)}" is cut by ${Math.round(over)} px`)
  }
  if (printed) {
    for (const box of document.querySelectorAll('.limit, .verdict, .check, .use, .chart, .tile')) {
      const style = getComputedStyle(box)
      if (shown(box) && (style.breakInside !== 'avoid' || box.getBoundingClientRect().height > paperHeight)) {
        wrong.push(`a page can break .${box.className.baseVal ?? box.className}: "${box.textContent.trim().slice(0, 50)}", ${Math.round(box.getBoundingClientRect().height)} px high`)
      }
    }
  }
  for (const figure of document.querySelectorAll('figure')) {
    const charts = figure.querySelectorAll('svg.chart')
    const title = document.getElementById(figure.getAttribute('aria-labelledby'))
    if (charts.length !== 1 || !title || title.closest('figure') !== figure) {
      wrong.push(`the figure "${figure.textContent.trim().slice(0, 40)}" has ${charts.length} charts, and its title is ${title ? 'of another' : 'missing'}`)
      continue
    }
    const said = figure.querySelector('.finding')?.textContent ?? ''
    const drawn = charts[0].textContent + (figure.querySelector('details.data')?.textContent ?? '')
    for (const [, value] of said.matchAll(/(?:Highest|Lowest|Most): (.*?)(?: \(.*?\))? at /g)) {
      if (!drawn.includes(value)) wrong.push(`"${title.textContent}": its caption says ${value}, which is not in the chart`)
    }
  }
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  const light = rgb => { const [r, g, b] = rgb.match(/[\d.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b) }
  const ground = light(getComputedStyle(document.body).backgroundColor)
  for (const svg of document.querySelectorAll('svg.chart')) {
    if (!shown(svg)) continue
    const box = svg.getBoundingClientRect()
    const labels = [...svg.querySelectorAll('text')].filter(t => !t.closest('.tip')).map(t => ({ node: t, text: t.textContent, box: t.getBoundingClientRect() }))
    for (const { node, text, box: b } of labels) {
      if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1) {
        wrong.push(`${svg.getAttribute('aria-label')}: the label "${text}" leaves the picture`)
      }
      const ink = light(getComputedStyle(node).fill)
      const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)
      if (contrast < 4.5) wrong.push(`${svg.getAttribute('aria-label')}: the label "${text}" has a contrast of ${contrast.toFixed(1)}`)
    }
    for (const shape of svg.querySelectorAll('path, polyline, polygon, line, rect, circle')) {
      const b = shape.getBoundingClientRect()
      if (shape.closest('.tip') || shape.classList.contains('hit')) continue
      if (b.left < box.left - 6 || b.right > box.right + 6 || b.top < box.top - 6 || b.bottom > box.bottom + 6) {
        wrong.push(`${svg.getAttribute('aria-label')}: ${shape.tagName}.${shape.getAttribute('class')} leaves the picture`)
      }
    }
    for (let i = 0; i < labels.length; i++) {
      for (let j = i + 1; j < labels.length; j++) {
        const [a, b] = [labels[i].box, labels[j].box]
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
        // A line's box is higher than its letters, so a small overlap is allowed.
        if (across > 0.5 && down > 0.35 * Math.min(a.height, b.height)) {
          wrong.push(`${svg.getAttribute('aria-label')}: "${labels[i].text}" and "${labels[j].text}" overlap`)
        }
      }
    }
  }
  return wrong
}

const open = yes => document.querySelectorAll('details').forEach(d => { d.open = yes })
const words = () => document.body.innerText.split(/\s+/).filter(w => /[\p{L}\p{N}]/u.test(w)).length
const height = () => document.documentElement.scrollHeight

// pages counts the pages of a PDF that Chromium wrote, whose page objects are not compressed.
async function pages(page, path) {
  const pdf = await page.pdf({ path, preferCSSPageSize: true, printBackground: true })
  return Buffer.from(pdf).toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g).length
}

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
})
let failed = 0
function say(name, wrong, note = '') {
  const unique = [...new Set(wrong)]
  console.log(`${unique.length ? 'FAIL' : 'ok  '} ${name}${note}`)
  for (const w of unique.slice(0, 25)) console.log(`       ${w}`)
  failed += unique.length
}

for (const file of args) {
  const url = pathToFileURL(resolve(file)).href
  const plain = basename(file, '.html')
  const name = plain === 'report' ? basename(dirname(resolve(file))) : plain
  const is = { bytes: statSync(file).size }
  for (const view of views) {
    const page = await browser.newPage()
    const wrong = []
    page.on('console', m => wrong.push(`console: ${m.text()}`))
    page.on('pageerror', e => wrong.push(`error: ${e.message}`))
    page.on('request', r => { if (r.url() !== url) wrong.push(`a request: ${r.url()}`) })
    await page.setViewport({ width: view.width, height: view.height, isMobile: !!view.phone, hasTouch: !!view.phone, deviceScaleFactor: view.phone ? 2 : 1 })
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: view.scheme }])
    await page.emulateMediaType(view.print ? 'print' : 'screen')
    await page.goto(url, { waitUntil: 'load' })
    if (view === desktop) {
      is.screens = await page.evaluate(height) / view.height
      is.words = await page.evaluate(words)
    }
    if (shots) {
      // The picture is taken in pieces, because the height of one picture is limited.
      const high = view.print ? 0 : await page.evaluate(height)
      for (let y = 0, i = 1; y < high; y += 3000, i++) {
        await page.screenshot({ path: `${shots}/${name}-${view.name}-${i}.png`, captureBeyondViewport: true, clip: { x: 0, y, width: view.width, height: Math.min(3000, high - y) } })
      }
    }
    if (view.print) is.pages = await pages(page, shots ? `${shots}/${name}.pdf` : undefined)
    wrong.push(...await page.evaluate(geometry, !!view.print, paper.height))
    // Everything is unfolded, because folded parts must pass too.
    await page.evaluate(open, true)
    if (view === desktop) is.open_words = await page.evaluate(words)
    if (view.print) is.open_pages = await pages(page, shots ? `${shots}/${name}-open.pdf` : undefined)
    wrong.push(...(await page.evaluate(geometry, !!view.print, paper.height)).map(w => w + ' (all opened)'))
    // axe is injected past the page's own policy, which allows no scripts.
    const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ['violations'] }) })()`)
    for (const v of found.violations) {
      wrong.push(`axe ${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 2).map(n => n.html.slice(0, 140)).join(' … ')} ×${v.nodes.length}`)
    }
    say(`${name} ${view.name}`, wrong)
    await page.close()
  }
  const most = limits[name] ?? {}
  say(`${name} size`, Object.keys(most).filter(k => is[k] > most[k] || !process.env.VIEWS && !is[k]).map(k => `${k.replace('_', ', ')}: ${is[k]}, at most ${most[k]}`),
    ': ' + Object.entries(is).map(([k, v]) => `${k} ${Math.round(10 * v) / 10}`).join(', '))
}
await browser.close()
process.exit(failed ? 1 : 0)
