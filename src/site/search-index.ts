/** The index of the search, which the page of a browser loads as a script. */
import MiniSearch, { type Options } from 'minisearch'
import type { Section } from './markdown.ts'

const EXCERPT_CHARACTERS_MAX = 160

/** A part of a document that the search finds. */
export interface Found {
  /** The page, and the anchor on it. */
  readonly path: string
  readonly title: string
  readonly heading: string
  readonly excerpt: string
}

/** Both sides of the index use these options. */
export const SEARCH_OPTIONS: Options<Found & { readonly id: number; readonly text: string }> = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['path', 'title', 'heading', 'excerpt'],
  searchOptions: {
    boost: { title: 4, heading: 3 },
    combineWith: 'AND',
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
  },
}

export interface SearchedPage {
  readonly path: string
  readonly title: string
  readonly sections: readonly Section[]
}

/** Returns a script that sets `svcSearchIndex` to the index as JSON. */
export function searchScript(pages: readonly SearchedPage[]): string {
  const index = new MiniSearch(SEARCH_OPTIONS)
  let id = 0
  for (const { path, title, sections } of pages) {
    for (const { anchor, heading, text } of sections) {
      const excerpt =
        text.length > EXCERPT_CHARACTERS_MAX ? `${text.slice(0, EXCERPT_CHARACTERS_MAX)}…` : text
      const target = anchor === '' ? path : `${path}#${anchor}`
      index.add({ id: id++, path: target, title, heading, text, excerpt })
    }
  }
  return `globalThis.svcSearchIndex = ${JSON.stringify(JSON.stringify(index))}\n`
}
