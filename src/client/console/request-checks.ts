/**
 * The checks of every request at the loopback address of the console. Another page of the browser,
 * a name that resolves to the loopback address (DNS rebinding), and another program on this machine
 * fail at one of them. A browser sends fetch metadata (Sec-Fetch-*) with every request to a
 * loopback address, and pages cannot forge it, Host or Origin.
 */

/** The parts of a request that the checks read. */
export interface CheckedRequest {
  readonly method?: string | undefined
  /** Names and values in turn, as they arrived: a repeated header stays visible. */
  readonly rawHeaders: readonly string[]
}

/** The use that the browser makes of the response. */
export type Use =
  /** A document that a person opens: typed, from a program, or reloaded. */
  | 'document'
  /** A script, a style or an image of the document. */
  | 'asset'
  /** A request of the script of the page. */
  | 'call'
  /** A request of the script of the page whose body is a file. */
  | 'upload'
  /** A file that the browser saves: a navigation that the page began, which no script can make. */
  | 'download'

const METHODS: Readonly<Record<Use, string>> = {
  document: 'GET',
  asset: 'GET',
  call: 'POST',
  upload: 'POST',
  download: 'GET',
}
const DESTINATIONS: Readonly<Record<Use, readonly string[]>> = {
  document: ['document'],
  asset: ['script', 'style', 'image'],
  call: ['empty'],
  upload: ['empty'],
  // Chromium names no destination for a link with `download`; other browsers name a document.
  download: ['empty', 'document'],
}
const MODES: Readonly<Record<Use, readonly string[]>> = {
  document: ['navigate'],
  asset: ['no-cors', 'same-origin', 'cors'],
  call: ['same-origin', 'cors'],
  upload: ['same-origin', 'cors'],
  download: ['navigate'],
}
const SITES: Readonly<Record<Use, readonly string[]>> = {
  document: ['none', 'same-origin'],
  asset: ['same-origin'],
  call: ['same-origin'],
  upload: ['same-origin'],
  // An address that a person typed, or another program opened, has the site `none`.
  download: ['same-origin'],
}
/** Media type of the body of a request of the script. */
const TYPES: Readonly<Partial<Record<Use, string>>> = {
  call: 'application/json',
  upload: 'application/octet-stream',
}

/** Returns the values of a header in their order. */
export function headerValues({ rawHeaders }: CheckedRequest, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === name)
}

/** Returns the only value of a header; null if it is absent or repeated. */
function single(request: CheckedRequest, name: string): string | null {
  const values = headerValues(request, name)
  return values.length === 1 ? values[0]! : null
}

/**
 * Returns why a request is rejected; null if it passes. `authority` is the address and the port
 * that the console listens at.
 */
export function rejectionOf(request: CheckedRequest, use: Use, authority: string): string | null {
  if (single(request, 'host') !== authority) return 'Host is not the address of the console.'
  if (request.method !== METHODS[use]) return 'The method is not the one of this path.'
  // A browser that loads ahead would use up the start URL without its person.
  if (headerValues(request, 'sec-purpose').length > 0) return 'The browser loads ahead.'
  const origins = headerValues(request, 'origin')
  const isOwn = origins.length === 1 && origins[0] === `http://${authority}`
  // Browsers omit Origin in the GET requests of a page and of a person.
  const type = TYPES[use]
  if (type !== undefined ? !isOwn : origins.length > 0 && !isOwn) {
    return 'Origin is not the page of the console.'
  }
  if (!SITES[use].includes(single(request, 'sec-fetch-site') ?? '')) {
    return 'Sec-Fetch-Site names another page, or is missing.'
  }
  if (!MODES[use].includes(single(request, 'sec-fetch-mode') ?? '')) {
    return 'Sec-Fetch-Mode does not fit this path, or is missing.'
  }
  if (!DESTINATIONS[use].includes(single(request, 'sec-fetch-dest') ?? '')) {
    return 'Sec-Fetch-Dest does not fit this path, or is missing.'
  }
  if (type !== undefined && single(request, 'content-type') !== type) {
    return `Content-Type is not ${type}.`
  }
  return null
}
