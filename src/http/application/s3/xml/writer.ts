/** Writes XML. Nodes contain only escaped text, so nothing can be written unescaped. */

/** XML text that is escaped. */
export class XmlNode {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'
const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

export type Content = string | number | boolean | readonly XmlNode[]

/** Returns an element. `name` must be a constant; `isRoot` adds the namespace of S3. */
export function element(name: string, content: Content, isRoot = false): XmlNode {
  const attributes = isRoot ? ` xmlns="${NAMESPACE}"` : ''
  const inner = Array.isArray(content)
    ? content.map(({ text }) => text).join('')
    : escapeXml(String(content))
  return new XmlNode(`<${name}${attributes}>${inner}</${name}>`)
}

/**
 * Escapes text. Like S3, it writes characters that XML 1.0 forbids as references: clients that list
 * such keys request `encoding-type=url`.
 */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
    .replace(/[\0-\x1f\x7f-\x9f\ufffe\uffff]/g, reference)
}

function reference(character: string): string {
  return `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`
}

export function xmlResponse(root: XmlNode, status = 200): Response {
  const headers = { 'content-type': 'application/xml', 'cache-control': 'no-store' }
  return new Response(DECLARATION + root.text, { status, headers })
}
