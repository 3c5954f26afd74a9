/** Reads the states of one subscription: rejects gaps, and joins states that come in parts. */
import { parseSequence } from '../calls/responses.ts'
import { responseInvalid } from '../errors.ts'
import { hasFields } from '../results.ts'
import type { Message } from './connection.ts'

/** Bound of the characters of a state in parts (contract/wire.md, Realtime). */
const STATE_CHARACTERS_MAX = 8 * 1024 * 1024
const HEAD = ['version', 'type', 'subscriptionId', 'revision', 'snapshotSequence', 'releaseId']

export interface ReceivedState {
  /** Tagged JSON, unchecked. */
  readonly result: unknown
  /** The commit up to which the state is current; null if the Query read no data. */
  readonly sequence: bigint | null
}

export class StateReader {
  #revision = 0n
  #fragments: string[] = []

  /** Returns a state once it is complete. Throws CLIENT_RESPONSE_INVALID for gaps. */
  read(message: Message): ReceivedState | null {
    const revision = parseSequence(message.revision)
    const sequence = parseSequence(message.snapshotSequence)
    if (revision !== this.#revision + 1n) throw responseInvalid('a state out of order')
    let result: unknown
    if (hasFields(message, ...HEAD, 'result')) {
      if (this.#fragments.length > 0) throw responseInvalid('a state within another')
      result = message.result
    } else {
      const text = this.#addPart(message)
      if (text === null) return null
      result = JSON.parse(text)
    }
    this.#revision = revision
    return { result, sequence }
  }

  /**
   * Returns the commit of a patch that applies to the last state, as `read` does. Throws
   * CLIENT_RESPONSE_INVALID for any other one.
   */
  readPatch(message: Message): bigint | null {
    const revision = parseSequence(message.revision)
    const isNext = revision !== null && parseSequence(message.base) === this.#revision
    if (!isNext || revision !== this.#revision + 1n || this.#fragments.length > 0) {
      throw responseInvalid('a patch out of order')
    }
    this.#revision = revision
    return parseSequence(message.snapshotSequence)
  }

  /** Returns the text of a result once its last part has arrived. */
  #addPart(message: Message): string | null {
    const { part, parts, fragment } = message
    const isNext =
      hasFields(message, ...HEAD, 'part', 'parts', 'fragment') &&
      part === this.#fragments.length + 1 &&
      Number.isSafeInteger(parts) &&
      (parts as number) >= Math.max(2, part as number) &&
      typeof fragment === 'string'
    if (!isNext) throw responseInvalid('parts of a state out of order')
    this.#fragments.push(fragment as string)
    const length = this.#fragments.reduce((sum, each) => sum + each.length, 0)
    if (length > STATE_CHARACTERS_MAX) throw responseInvalid('a state that is too long')
    if (part !== parts) return null
    return this.#fragments.splice(0).join('')
  }
}
