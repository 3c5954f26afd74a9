/**
 * Parses the XML of requests, which has only elements and text. Document types, processing
 * instructions, comments and CDATA are rejected, so only the five entities of XML itself exist.
 */
import { S3Fault } from '../errors.ts'

export interface XmlElement {
  /** The name, without a namespace prefix. */
  readonly name: string
  readonly children: readonly XmlElement[]
  /** The text of the element, without that of its children. */
  readonly text: string
}

/** Bound on the elements of a document. It admits 10,000 parts with a checksum each. */
const ELEMENTS_MAX = 50_000
const DEPTH_MAX = 8
const DECLARATION = /^\ufeff?<\?xml[ \t\r\n][^<>?]{0,200}\?>/
const NAME = '[A-Za-z_][\\w.-]{0,63}'
const SPACE = '[ \\t\\r\\n]'
const VALUE = `(?:"[^"<]{0,512}"|'[^'<]{0,512}')`
const ATTRIBUTES = `(?:${SPACE}+(?:${NAME}:)?${NAME}${SPACE}*=${SPACE}*${VALUE}){0,8}`
const TAG = new RegExp(`<(/?)(?:${NAME}:)?(${NAME})(${ATTRIBUTES})${SPACE}*(/?)>`, 'y')
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...([
    ['amp', '&'],
    ['lt', '<'],
    ['gt', '>'],
    ['quot', '"'],
    ['apos', "'"],
  ] as const),
])

interface OpenElement {
  readonly name: string
  readonly children: XmlElement[]
  text: string
}

/** Parses a document. Throws MalformedXML. */
export function readXml(bytes: Uint8Array): XmlElement {
  const text = decodeUtf8(bytes)
  const root: OpenElement = { name: '', children: [], text: '' }
  const open = [root]
  let count = 0
  let at = DECLARATION.exec(text)?.[0].length ?? 0
  while (at < text.length) {
    const start = text.indexOf('<', at)
    const end = start < 0 ? text.length : start
    open.at(-1)!.text += unescapeXml(text.slice(at, end))
    if (start < 0) break
    TAG.lastIndex = start
    const tag = TAG.exec(text)
    if (tag === null) throw malformed('a tag')
    const [, slash, name, attributes, selfClosing] = tag
    at = TAG.lastIndex
    if (slash === '/') {
      if (attributes !== '' || selfClosing !== '') throw malformed('an end tag')
      close(open, name!)
      continue
    }
    if (++count > ELEMENTS_MAX || open.length > DEPTH_MAX) throw malformed('too many elements')
    open.push({ name: name!, children: [], text: '' })
    if (selfClosing === '/') close(open, name!)
  }
  const [document] = root.children
  if (open.length !== 1 || root.children.length !== 1 || root.text.trim() !== '') {
    throw malformed('not one root element')
  }
  return document!
}

/** Moves the innermost open element to its parent. */
function close(open: OpenElement[], name: string): void {
  const ended = open.pop()!
  if (open.length === 0 || ended.name !== name) throw malformed('an end tag without its start')
  open.at(-1)!.children.push(ended)
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed('not UTF-8')
  }
}

function unescapeXml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&([^;&]{0,10});|&/g, (_, entity: string | undefined) => {
    const named = entity === undefined ? undefined : ENTITIES.get(entity)
    if (named !== undefined) return named
    const [, hex, decimal] = /^#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}))$/.exec(entity ?? '') ?? []
    const point = hex === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(hex, 16)
    const isCharacter = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
    if (!isCharacter) throw malformed('an entity')
    return String.fromCodePoint(point)
  })
}

/** Returns the text of the only child with this name; null without one. Throws MalformedXML. */
export function childText({ children }: XmlElement, name: string): string | null {
  const found = children.filter((child) => child.name === name)
  if (found.length > 1) throw malformed(`more than one ${name}`)
  return found[0]?.text ?? null
}

function malformed(detail: string): S3Fault {
  return new S3Fault('MalformedXML', detail)
}
