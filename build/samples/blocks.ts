/** The samples of the documents: every block of code, by the place where it stands. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Marked, type Token } from 'marked'

export interface Sample {
  /**
   * The document, the anchor of the nearest heading above, and the number of the block below it, as
   * in `src/docs/calls.md#errors 1`.
   */
  readonly place: string
  readonly document: string
  /** The word after the fence; `plain` for none, and for a block that is indented. */
  readonly language: string
  readonly text: string
}

/** Returns the documents that have samples: README.md, and all below src/docs. */
export function sampleDocuments(root: string): string[] {
  const docs = readdirSync(join(root, 'src/docs'), { recursive: true, encoding: 'utf8' })
  return ['README.md', ...docs.map((name) => `src/docs/${name.replaceAll('\\', '/')}`)]
    .filter((path) => path.endsWith('.md') && existsSync(join(root, path)))
    .toSorted()
}

export function readSamples(root: string): Sample[] {
  return sampleDocuments(root).flatMap((document) =>
    samplesOf(document, readFileSync(join(root, document), 'utf8')),
  )
}

export function samplesOf(document: string, markdown: string): Sample[] {
  const samples: Sample[] = []
  let anchor = ''
  let count = 0
  const visit = (token: Token): void => {
    if (token.type === 'heading') {
      anchor = anchorOf(String(token.text))
      count = 0
    } else if (token.type === 'code') {
      count += 1
      const language = /^\S*/.exec(token.lang ?? '')![0]
      samples.push({
        place: `${document}#${anchor} ${count}`,
        document,
        language: language === '' ? 'plain' : language,
        text: String(token.text).trimEnd(),
      })
    }
    const { items = [], tokens = [] } = token as { items?: Token[]; tokens?: Token[] }
    for (const each of [...items, ...tokens]) visit(each)
  }
  for (const token of new Marked({ gfm: true }).lexer(markdown)) visit(token)
  return samples
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
