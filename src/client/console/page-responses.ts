/** Responses of the console: their headers, and the pages shown in place of the console. */
import type { ServerResponse } from 'node:http'
import type { Json } from '../../value/strict-json.ts'

/** No code or style in the document, nothing of other hosts, and no text that becomes markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export const JSON_TYPE = 'application/json'
export const LINES_TYPE = 'application/x-ndjson'

const NOTICES = {
  used: [
    'This address was used before',
    'It opens the console once. Another program may have it, so the page that it opened has ' +
      'ended too. The terminal of svc console shows a new address.',
  ],
  closed: [
    'The console is not open here',
    'Open the address that the terminal of svc console shows. It works once.',
  ],
} as const

export type NoticeName = keyof typeof NOTICES

/** Sends a whole response. */
export function respond(
  response: ServerResponse,
  status: number,
  { type, body, headers = {} }: ResponseBody,
): void {
  response.writeHead(status, {
    ...HEADERS,
    ...headers,
    'content-type': type,
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

export interface ResponseBody {
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

export function respondJson(response: ServerResponse, status: number, document: Json): void {
  respond(response, status, { type: JSON_TYPE, body: JSON.stringify(document) })
}

/** Sends the head of a response whose lines follow. */
export function beginLines(response: ServerResponse): void {
  response.writeHead(200, { ...HEADERS, 'content-type': LINES_TYPE })
  response.flushHeaders()
}

/** A file is saved and never shown; a browser that shows it has no scripts and another origin. */
const FILE_HEADERS: Readonly<Record<string, string>> = {
  ...HEADERS,
  'accept-ranges': 'none',
  'content-security-policy': "sandbox; default-src 'none'",
  'content-type': 'application/octet-stream',
}

/** Sends the head of a file, whose name is one that every system takes as it is. */
export function beginFile(response: ServerResponse, fileName: string, length: number | null): void {
  response.writeHead(200, {
    ...FILE_HEADERS,
    'content-disposition': disposition(fileName),
    ...(length !== null && { 'content-length': length }),
  })
  response.flushHeaders()
}

/** Returns Content-Disposition (RFC 6266): an ASCII name for old browsers, and the exact name. */
function disposition(fileName: string): string {
  const plain = fileName.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(fileName).replace(/['()*]/g, percentEncoded)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/** Rejects a request without a word about the reason, which would help only its author. */
export function reject(response: ServerResponse, status: number): void {
  respond(response, status, { type: 'text/plain; charset=utf-8', body: `${status}\n` })
}

/** Shows a page without code that repeats no part of the request. */
export function respondNotice(response: ServerResponse, status: number, name: NoticeName): void {
  const [title, text] = NOTICES[name]
  const body = [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>`,
    `<body><main><h1>${title}</h1><p>${text}</p></main></body></html>`,
    '',
  ].join('\n')
  respond(response, status, { type: 'text/html; charset=utf-8', body })
}

export function redirect(response: ServerResponse, location: string, cookie: string): void {
  response.writeHead(303, { ...HEADERS, location, 'set-cookie': cookie })
  response.end()
}
