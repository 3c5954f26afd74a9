/**
 * The functions that the process around a realm lends to it. They take and return strings, numbers
 * and objects of the realm. They are never handed to the code of a Workspace and do not throw,
 * since an object of the outer realm would lead out of this one.
 */
export interface Bridge {
  /** Sends one frame to the server. */
  emit(text: string): void
  /**
   * Runs `task` as part of the call. Every continuation of it is part of that call too, whichever
   * call settles the promises that it awaits.
   */
  runAs(call: object, task: () => void): void
  /** The call that the running code is part of; undefined outside of all calls. */
  callOfRunningCode(): unknown
  /** Reports that a promise is handled whose rejection was reported as unhandled. */
  rejectionHandled(): void
  /** CPU microseconds that the running call has used in this process. */
  spentMicros(): number
  /** ID of the document that a call inserts after `count` others (value/document-ids.ts). */
  documentId(table: string, nowMicros: string, seed: string, count: number): string
  /** Microseconds since the Unix epoch. */
  nowMicros(): number
  utf8Length(text: string): number
  /** Bytes written and UTF-16 units read, as `written * 2 ** 32 + read`. */
  utf8Write(text: string, into: Uint8Array): number
  /** Null if `strict` and the bytes are not UTF-8. */
  utf8Read(bytes: Uint8Array, strict: boolean, keepMark: boolean): string | null
  /** The href and the parts of URL_PARTS, separated by line feeds; null if it is not a URL. */
  parseUrl(text: string, base: string | null): string | null
  /** Sets one part of a URL; the result has the form that `parseUrl` returns. */
  setUrlPart(href: string, part: string, value: string): string | null
  /** Bytes as characters up to U+00FF; null if the text is not base64. */
  fromBase64(text: string): string | null
  /** Null if a character is above U+00FF. */
  toBase64(text: string): string | null
}

/** Parts of a URL in the order in which they follow the href in what `parseUrl` returns. */
export const URL_PARTS = [
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const

/** The bridge as functions of this realm. */
export let bridge: Bridge

/** Connects this realm to the process around it. */
export function connectBridge(outer: Bridge): void {
  const { emit, runAs, callOfRunningCode, rejectionHandled, spentMicros, documentId } = outer
  const { nowMicros, utf8Length, utf8Write, utf8Read } = outer
  const { parseUrl, setUrlPart, fromBase64, toBase64 } = outer
  bridge = {
    emit: (text) => guarded(() => emit(text)),
    runAs: (call, task) => guarded(() => runAs(call, task)),
    callOfRunningCode: () => guarded(callOfRunningCode),
    rejectionHandled: () => guarded(rejectionHandled),
    spentMicros: () => guarded(spentMicros),
    documentId: (table, now, seed, count) => guarded(() => documentId(table, now, seed, count)),
    nowMicros: () => guarded(nowMicros),
    utf8Length: (text) => guarded(() => utf8Length(text)),
    utf8Write: (text, into) => guarded(() => utf8Write(text, into)),
    utf8Read: (bytes, strict, keepMark) => guarded(() => utf8Read(bytes, strict, keepMark)),
    parseUrl: (text, base) => guarded(() => parseUrl(text, base)),
    setUrlPart: (href, part, value) => guarded(() => setUrlPart(href, part, value)),
    fromBase64: (text) => guarded(() => fromBase64(text)),
    toBase64: (text) => guarded(() => toBase64(text)),
  }
}

/**
 * Keeps errors of the outer realm out of this one. The outer functions do not throw by themselves,
 * but a call stack that is almost full overflows inside of them.
 */
function guarded<T>(call: () => T): T {
  try {
    return call()
  } catch {
    throw new RangeError('the call stack or the memory is exhausted')
  }
}
