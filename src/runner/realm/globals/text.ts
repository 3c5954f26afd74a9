/** TextEncoder, TextDecoder, atob and btoa. */
import { bridge } from '../bridge.ts'

const { isView } = ArrayBuffer

export class TextEncoder {
  get encoding(): string {
    return 'utf-8'
  }
  encode(input: unknown = ''): Uint8Array {
    const text = `${input}`
    const bytes = new Uint8Array(bridge.utf8Length(text))
    bridge.utf8Write(text, bytes)
    return bytes
  }
  encodeInto(input: unknown, into: Uint8Array): { read: number; written: number } {
    if (!(into instanceof Uint8Array))
      throw new TypeError('TextEncoder.encodeInto: give it a Uint8Array')
    const both = bridge.utf8Write(`${input}`, into)
    const written = Math.floor(both / 2 ** 32)
    return { read: both - written * 2 ** 32, written }
  }
}

export class TextDecoder {
  readonly fatal: boolean
  readonly ignoreBOM: boolean
  constructor(label: unknown = 'utf-8', options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
    const name = `${label}`.trim().toLowerCase()
    if (name !== 'utf-8' && name !== 'utf8') {
      throw new RangeError(`TextDecoder: only utf-8 is supported, not "${name}"`)
    }
    this.fatal = options.fatal === true
    this.ignoreBOM = options.ignoreBOM === true
  }
  get encoding(): string {
    return 'utf-8'
  }
  decode(input?: ArrayBufferView | ArrayBuffer, options?: { stream?: boolean }): string {
    if (input === undefined) return ''
    if (options?.stream === true)
      throw new TypeError('TextDecoder does not decode streams: join the chunks first')
    const bytes = isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input)
    const text = bridge.utf8Read(bytes, this.fatal, this.ignoreBOM)
    if (text === null) throw new TypeError('TextDecoder: the bytes are not UTF-8')
    return text
  }
}

export function atob(input: unknown): string {
  const text = bridge.fromBase64(`${input}`)
  if (text === null) throw new TypeError('atob: the text is not base64')
  return text
}

export function btoa(input: unknown): string {
  const text = bridge.toBase64(`${input}`)
  if (text === null) throw new TypeError('btoa: encode characters above U+00FF as bytes first')
  return text
}
