/**
 * What the realm of a Workspace gets from the process around it: functions that take and give
 * strings, numbers and the realm's own objects. They are never handed to the Workspace's code,
 * and none throws, since an object of the outer realm would lead out of this one.
 */
export interface Bridge {
  /** One frame for the server. */
  emit(text: string): void
  /**
   * Does the work of a call. All that follows from it is that call's too, whatever settles the
   * promises that it waits for.
   */
  enter(call: object, work: () => void): void
  /** The call that the running code follows from; undefined where it follows from none. */
  entered(): unknown
  /** A promise that was told as rejected is looked at after all. */
  lookedAt(): void
  /** Microseconds that the running call has taken in this process. */
  spentMicros(): number
  /** The ID of the document that a call inserts after `count` others (value/document-ids.ts). */
  documentId(table: string, nowMicros: string, seed: string, count: number): string
  /** Microseconds since the Unix epoch. */
  nowMicros(): number
  utf8Length(text: string): number
  /** Bytes written and UTF-16 units read, as `written * 2 ** 32 + read`. */
  utf8Write(text: string, into: Uint8Array): number
  /** Null where `strict` and the bytes are no UTF-8. */
  utf8Read(bytes: Uint8Array, strict: boolean, keepMark: boolean): string | null
  /** The href and the eleven parts of URL_PARTS, separated by line feeds; null for no URL. */
  parseUrl(text: string, base: string | null): string | null
  /** The same after one part was set. */
  setUrlPart(href: string, part: string, value: string): string | null
  /** Bytes as characters up to U+00FF; null for no base64. */
  fromBase64(text: string): string | null
  toBase64(text: string): string | null
}

/**
 * The same bridge, made of functions of this realm. What the outer functions throw after all, such
 * as the overflow of a stack that was almost full, is an object of the outer realm: it stays here.
 */
export function makeBridge(outer: Bridge): Bridge {
  function within<T>(call: () => T): T {
    try {
      return call()
    } catch {
      throw new RangeError('the call stack or the memory is exhausted')
    }
  }
  const {
    emit,
    enter,
    entered,
    lookedAt,
    spentMicros,
    documentId,
    nowMicros,
    utf8Length,
    utf8Write,
    utf8Read,
  } = outer
  const { parseUrl, setUrlPart, fromBase64, toBase64 } = outer
  return {
    emit: (text) => within(() => emit(text)),
    enter: (call, work) => within(() => enter(call, work)),
    entered: () => within(entered),
    lookedAt: () => within(lookedAt),
    spentMicros: () => within(spentMicros),
    documentId: (table, now, seed, count) => within(() => documentId(table, now, seed, count)),
    nowMicros: () => within(nowMicros),
    utf8Length: (text) => within(() => utf8Length(text)),
    utf8Write: (text, into) => within(() => utf8Write(text, into)),
    utf8Read: (bytes, strict, keepMark) => within(() => utf8Read(bytes, strict, keepMark)),
    parseUrl: (text, base) => within(() => parseUrl(text, base)),
    setUrlPart: (href, part, value) => within(() => setUrlPart(href, part, value)),
    fromBase64: (text) => within(() => fromBase64(text)),
    toBase64: (text) => within(() => toBase64(text)),
  }
}
