/** The frame of a page: head, header, chapters, contents of the page, and its neighbours. */
import type { Chapter } from './chapters.ts'
import { escapeHtml } from './escape.ts'
import type { Heading } from './markdown.ts'

/** No code or style in the document, and nothing of other hosts. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** More entries than this would hide the rest of a page: the deeper ones are left out. */
const CONTENTS_MAX = 40

/** A page as others name it. */
export interface Entry {
  readonly path: string
  readonly title: string
}

export interface Page extends Entry {
  readonly html: string
  readonly headings: readonly Heading[]
}

export interface Frame {
  readonly version: string
  readonly chapters: readonly Chapter[]
  /** Returns the page of a document by its name. */
  readonly entryOf: (name: string) => Entry
  readonly previous: Entry | null
  readonly next: Entry | null
}

/** Renders a whole page. Its links are relative, so that it works at every address. */
export function pageHtml(page: Page, frame: Frame): string {
  const up = '../'.repeat(page.path.split('/').length - 1)
  const isFront = page.path === 'index.html'
  const title = isFront ? 'svc: documentation' : `${page.title} · svc`
  return [
    '<!doctype html>',
    `<html lang="en" data-up="${up}">`,
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${escapeHtml(title)}</title>`,
    `<link rel="icon" href="${up}icon.svg" type="image/svg+xml">`,
    `<link rel="stylesheet" href="${up}style.css">`,
    `<script src="${up}theme.js"></script>`,
    `<script src="${up}site.js" defer></script>`,
    '</head>',
    '<body>',
    '<a class="skip" href="#content">Skip to the text</a>',
    '<header>',
    `<a class="brand" href="${up}index.html">svc <span>${escapeHtml(frame.version)}</span></a>`,
    '<div class="tools" id="tools"></div>',
    '<a class="menu" href="#chapters">Chapters</a>',
    '</header>',
    '<div class="columns">',
    '<main id="content" tabindex="-1">',
    contentsHtml(page.headings),
    `<article>\n${page.html}</article>`,
    isFront ? frontLists(frame) : '',
    neighboursHtml(frame, up),
    '</main>',
    chaptersHtml(page, frame, up),
    '</div>',
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

function contentsHtml(headings: readonly Heading[]): string {
  const deepest = headings.length > CONTENTS_MAX ? 2 : 3
  const shown = headings.filter(({ level }) => level <= deepest)
  if (shown.length < 2) return ''
  const items = shown.map(
    ({ level, anchor, text }) =>
      `<li class="level-${level}"><a href="#${anchor}">${escapeHtml(text)}</a></li>`,
  )
  return [
    '<nav class="contents" aria-label="On this page"><details open>',
    '<summary>On this page</summary>',
    `<ul>${items.join('\n')}</ul>`,
    '</details></nav>',
  ].join('\n')
}

function chaptersHtml(page: Page, { chapters, entryOf }: Frame, up: string): string {
  const item = (name: string): string => {
    const { path, title } = entryOf(name)
    const current = path === page.path ? ' aria-current="page"' : ''
    return `<li><a href="${up}${path}"${current}>${escapeHtml(shortTitle(name, title))}</a></li>`
  }
  const lists = chapters.map(
    ({ title, documents }) =>
      `<h2>${escapeHtml(title)}</h2>\n<ul>${documents.map(item).join('\n')}</ul>`,
  )
  return `<nav class="chapters" id="chapters" aria-label="Chapters">\n${lists.join('\n')}\n</nav>`
}

/** The part of a title before its explanation, as in `Releases: publish, promote`. */
function shortTitle(name: string, title: string): string {
  const short = title.split(': ')[0]!
  return short.length <= 44 ? short : name.slice(name.indexOf('/') + 1)
}

function frontLists({ chapters, entryOf }: Frame): string {
  const item = (name: string): string => {
    const { path, title } = entryOf(name)
    return `<li><a href="${path}">${escapeHtml(title)}</a></li>`
  }
  const sections = chapters.map(
    ({ title, documents }) =>
      `<section><h2>${escapeHtml(title)}</h2><ul>${documents.map(item).join('\n')}</ul></section>`,
  )
  return `<div class="front">\n${sections.join('\n')}\n</div>`
}

function neighboursHtml({ previous, next }: Frame, up: string): string {
  const link = (page: Entry | null, relation: string, word: string): string =>
    page === null
      ? ''
      : `<a rel="${relation}" href="${up}${page.path}"><span>${word}</span> ` +
        `${escapeHtml(page.title)}</a>`
  const links = [link(previous, 'prev', 'Previous'), link(next, 'next', 'Next')]
  return `<nav class="neighbours" aria-label="Neighbours">${links.join('\n')}</nav>`
}
