/** The pages of the documentation: links, bytes, requests, and documents with markup. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { DOCUMENTS } from '../../src/docs/embedded.generated.ts'
import { SITE_ASSETS, SITE_DOCUMENTS } from '../../src/site/assets.generated.ts'
import { chaptersOf } from '../../src/site/chapters.ts'
import { embeddedSite } from '../../src/site/embedded-site.ts'
import { parseDocument } from '../../src/site/markdown.ts'
import { Site } from '../../src/site/site.ts'
import { ROOT } from '../bundle.ts'
import { isFileStale } from '../generated-files.ts'
import { frontPage, renderSiteModule, SITE_MODULE } from './assets.ts'
import { writeSite } from './write.ts'

const KIB = 1024
const site = embeddedSite(DOCUMENTS, '1.2.3')
const text = (path: string, of: Site = site): string => of.file(path)!.text
const pagesOf = (of: Site): string[] => of.paths.filter((path) => path.endsWith('.html'))

const valuesOf = (html: string, name: string): string[] =>
  [...html.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g'))].map(([, value]) => value!)

/** Names each link of the pages that leads to no page or no heading, as `page: target`. */
function deadLinks(of: Site): string[] {
  const pages = new Map(pagesOf(of).map((page) => [page, text(page, of)]))
  const ids = new Map([...pages].map(([page, html]) => [page, new Set(valuesOf(html, 'id'))]))
  const paths = new Set(of.paths)
  return [...pages].flatMap(([page, html]) => {
    const targets = [...valuesOf(html, 'href'), ...valuesOf(html, 'src')]
    const dead = targets.filter((target) => {
      if (/^[a-z]+:/.test(target)) return false
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page : posix.join(posix.dirname(page), file)
      if (!paths.has(path)) return true
      return anchor !== undefined && ids.get(path)?.has(anchor) !== true
    })
    return dead.map((target) => `${page}: ${target}`)
  })
}

const siteOf = (index: string): Site =>
  new Site({ version: '1', documents: { index, dev: '# Dev\n\n## One\n' }, assets: SITE_ASSETS })

test('every link of every page leads to a page and a heading', { tags: ['slow'] }, () => {
  expect(pagesOf(site).length).toBeGreaterThan(45)
  expect(deadLinks(site)).toEqual([])
})

test('a dead link and a dead anchor are found', () => {
  const links = '[a](dev.md) [b](dev.md#one) [c](dev.md#two) [d](none.md) [e](#none)'
  expect(deadLinks(siteOf(`# Index\n\n${links}\n`))).toEqual([
    'index.html: dev.html#two',
    'index.html: none.html',
    'index.html: #none',
  ])
})

test('an anchor of a page belongs to one element', { tags: ['slow'] }, () => {
  for (const page of pagesOf(site)) {
    const ids = valuesOf(text(page), 'id')
    expect([page, ids.length]).toEqual([page, new Set(ids).size])
  }
})

test('every document of svc docs and of the contract stands in one chapter', () => {
  const names = [...Object.keys(DOCUMENTS), ...Object.keys(SITE_DOCUMENTS)]
  const chapters = chaptersOf(names)
  expect(chapters.map(({ title }) => title)).not.toContain('More')
  const listed = chapters.flatMap(({ documents }) => documents)
  expect(listed.toSorted()).toEqual(names.filter((name) => name !== 'index').toSorted())
  const contract = readdirSync(join(ROOT, 'src/docs/contract')).map((name) => `contract/${name}`)
  expect(listed.filter((name) => name.includes('/')).map((name) => `${name}.md`)).toEqual(
    expect.arrayContaining(contract),
  )
  // A document that the order does not know is shown all the same.
  expect(chaptersOf(['dev', 'unknown']).at(-1)).toEqual({ title: 'More', documents: ['unknown'] })
})

test('no page has code or style of its own, and none requests a file of another host', () => {
  for (const page of pagesOf(site)) {
    const html = text(page)
    expect(html).toContain('<meta http-equiv="Content-Security-Policy" content="default-src ')
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|<[^>]*\s(?:on[a-z]+|style)=/)
    expect(html).not.toMatch(/<(?:script|link|img|iframe|source)[^>]*(?:src|href)="(?:[a-z]+:|\/)/)
  }
  const { text: style } = SITE_ASSETS['style.css']!
  expect(style).not.toMatch(/url\(|@import/)
})

test('markup in a document is shown as text', () => {
  const markup = '<img src=x onerror="attack()"><script>attack()</script>'
  const { html: render, sections } = parseDocument(
    [
      '# Title',
      '<!-- a mark -->',
      markup,
      '',
      `Inline ${markup} and [a link](javascript:attack()) and ![an image](https://example.com/x).`,
      '',
      '[quotes](x.md"onclick="attack)',
      '',
      '```sh',
      '</code></pre><script>attack()</script>',
      '```',
      '',
      '```none"><script>',
      markup,
      '```',
      '',
      `| ${markup} |`,
      '|---|',
      `| ${markup} |`,
    ].join('\n'),
    (target) => target,
  )
  const html = render()
  const tags = [...html.matchAll(/<([a-z0-9]+)/g)].map(([, name]) => name)
  const known = ['a', 'code', 'div', 'h1', 'p', 'pre', 'span', 'table', 'tbody', 'td', 'th']
  expect([...new Set(tags)].filter((tag) => ![...known, 'thead', 'tr'].includes(tag!))).toEqual([])
  expect(html).not.toMatch(/<[^>]*\son[a-z]+=/)
  expect(html).not.toContain('javascript:')
  expect(html).not.toContain('a mark')
  expect(html).toContain('&lt;script&gt;attack()&lt;/script&gt;')
  // The search shows texts as text, so they stay as they are.
  expect(sections[0]!.text).toContain('<script>')
})

test('headings have the anchors that links on GitHub have, and repeated ones a number', () => {
  const { headings, title } = parseDocument('# A\n\n## `svc x` & more\n\n## B\n\n### B\n', String)
  expect(title).toBe('A')
  expect(headings).toEqual([
    { level: 2, anchor: 'svc-x--more', text: 'svc x & more' },
    { level: 2, anchor: 'b', text: 'B' },
    { level: 3, anchor: 'b-1', text: 'B' },
  ])
})

test('the pages are the same bytes each time, and those that are written are those served', {
  tags: ['slow'],
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-site-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeSite(embeddedSite(DOCUMENTS, '1.2.3'), folder)
  const written = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('.'))
    .map((name) => name.replaceAll('\\', '/'))
  expect(written.toSorted()).toEqual(site.paths)
  for (const path of site.paths) expect(readFileSync(join(folder, path), 'utf8')).toBe(text(path))
})

test('the site has no file beside its own', () => {
  for (const path of ['', '/', 'none.html', 'dev', '../package.json', '__proto__', 'dev.html/']) {
    expect(site.file(path)).toBeNull()
  }
})

test('the embedded scripts, styles and documents are those of their sources', async () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  expect(isFileStale(ROOT, SITE_MODULE, await renderSiteModule(ROOT, readme))).toBe(false)
  expect(() => frontPage('# svc\n\n## Other\n')).toThrow('The first minute')
})

test('the scripts and styles have at most 24 KiB compressed', () => {
  const sizes = Object.values(SITE_ASSETS).map((asset) => gzipSync(asset.text).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(24 * KIB)
})
