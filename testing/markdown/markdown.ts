/** Markdown documents of the project, and the parts of them that tests look at. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface MarkdownFile {
  /** The path from the root, with slashes. */
  readonly path: string
  readonly text: string
}

export interface CodeBlock {
  readonly language: string
  readonly text: string
  /** The line above the block, such as a comment that says what it is; empty for none. */
  readonly above: string
}

/** Every Markdown file that belongs to the project, sorted by path. */
export function readMarkdown(root: string): MarkdownFile[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'))
  const below = ['src', 'build', 'testing', 'bench', 'migrations', 'dist-config'].flatMap(
    (folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  )
  return [...top, ...below]
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

const BLOCK = /(?:^|\n)([^\n]*)\n[ ]*```(\w*)\n([\s\S]*?)\n[ ]*```(?=\n|$)/g

export function codeBlocks(text: string): CodeBlock[] {
  return [...text.matchAll(BLOCK)].map(([, above = '', language = '', block = '']) => ({
    language,
    text: block,
    above,
  }))
}

/** Code between single backquotes in the prose, not in blocks. */
export function inlineCode(text: string): string[] {
  const prose = text.replace(BLOCK, '\n')
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll('\n', ' '))
}

/** Targets of links in the prose, without those that have a scheme. */
export function relativeLinks(text: string): string[] {
  const prose = text.replace(BLOCK, '\n').replace(/`[^`]*`/g, '``')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return targets.filter((target) => !/^[a-z]+:/.test(target))
}

/** Anchors of the headings, as GitHub makes them. */
export function anchors(text: string): string[] {
  const headings = [...text.replace(BLOCK, '\n').matchAll(/^#+ (.*)$/gm)]
  return headings.map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}
