// Opens reports in headless Chromium at desktop and phone width, light and
// dark, and fails on: console messages, network requests, a page wider than
// the window, labels of a chart that touch each other or leave the picture,
// and what axe-core finds. With --shots DIR it also leaves screenshots and a
// PDF there.
//
//   node check.mjs [--shots DIR] REPORT.html...
//
// puppeteer-core and axe-core are looked for in NODE_PATH's first folder.
import { createRequire } from 'node:module'
import { readFileSync, mkdirSync } from 'node:fs'
import { resolve, basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(resolve(process.env.NODE_PATH ?? '.', 'x.js'))
const puppeteer = require('puppeteer-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

const args = process.argv.slice(2)
let shots = ''
if (args[0] === '--shots') {
  shots = args[1]
  args.splice(0, 2)
  mkdirSync(shots, { recursive: true })
}
const views = [
  { name: 'desktop-light', width: 1280, height: 900, scheme: 'light' },
  { name: 'desktop-dark', width: 1280, height: 900, scheme: 'dark' },
  { name: 'phone-light', width: 390, height: 844, scheme: 'light', phone: true },
  { name: 'phone-dark', width: 390, height: 844, scheme: 'dark', phone: true },
]

// geometry runs in the page: what overlaps, what leaves its picture.
function geometry() {
  const wrong = []
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest('.scroll, .source, .log'))
    wrong.push(`the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth} px: ${wide.slice(0, 3).map(e => e.tagName + '.' + (e.className.baseVal ?? e.className)).join(', ')}`)
  }
  for (const svg of document.querySelectorAll('svg.chart')) {
    if (!svg.checkVisibility()) continue
    const box = svg.getBoundingClientRect()
    const labels = [...svg.querySelectorAll('text')].filter(t => !t.closest('.tip')).map(t => ({ text: t.textContent, box: t.getBoundingClientRect() }))
    for (const { text, box: b } of labels) {
      if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1) {
        wrong.push(`${svg.getAttribute('aria-label')}: the label "${text}" leaves the picture`)
      }
    }
    for (let i = 0; i < labels.length; i++) {
      for (let j = i + 1; j < labels.length; j++) {
        const [a, b] = [labels[i].box, labels[j].box]
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
        // Line boxes are higher than their letters.
        if (across > 0.5 && down > 0.35 * Math.min(a.height, b.height)) {
          wrong.push(`${svg.getAttribute('aria-label')}: "${labels[i].text}" and "${labels[j].text}" overlap`)
        }
      }
    }
  }
  return wrong
}

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
})
let failed = 0
for (const file of args) {
  const url = pathToFileURL(resolve(file)).href
  const name = basename(dirname(resolve(file))) + '-' + basename(file, '.html')
  for (const view of views) {
    const page = await browser.newPage()
    const wrong = []
    page.on('console', m => wrong.push(`console: ${m.text()}`))
    page.on('pageerror', e => wrong.push(`error: ${e.message}`))
    page.on('request', r => { if (r.url() !== url) wrong.push(`a request: ${r.url()}`) })
    await page.setViewport({ width: view.width, height: view.height, isMobile: !!view.phone, hasTouch: !!view.phone, deviceScaleFactor: view.phone ? 2 : 1 })
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: view.scheme }])
    await page.goto(url, { waitUntil: 'load' })
    if (shots) {
      // In pieces: a picture of a whole page has a limit to its height.
      const height = await page.evaluate(() => document.documentElement.scrollHeight)
      for (let y = 0, i = 1; y < height; y += 3000, i++) {
        await page.screenshot({ path: `${shots}/${name}-${view.name}-${i}.png`, captureBeyondViewport: true, clip: { x: 0, y, width: view.width, height: Math.min(3000, height - y) } })
      }
    }
    wrong.push(...await page.evaluate(geometry))
    // With everything opened: what is folded must hold too.
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true }))
    wrong.push(...(await page.evaluate(geometry)).map(w => w + ' (all opened)'))
    // axe runs beside the page's own policy, which allows no script.
    const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ['violations'] }) })()`)
    for (const v of found.violations) {
      wrong.push(`axe ${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 2).map(n => n.html.slice(0, 140)).join(' … ')} ×${v.nodes.length}`)
    }
    if (shots && view.name === 'desktop-light') {
      await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = false }))
      await page.pdf({ path: `${shots}/${name}.pdf`, preferCSSPageSize: true, printBackground: true })
    }
    const unique = [...new Set(wrong)]
    console.log(`${unique.length ? 'FAIL' : 'ok  '} ${name} ${view.name}`)
    for (const w of unique.slice(0, 25)) console.log(`       ${w}`)
    failed += unique.length
    await page.close()
  }
}
await browser.close()
process.exit(failed ? 1 : 0)
