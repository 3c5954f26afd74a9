/** Drives a Host in this process, without a sandbox, with the messages of its protocol. */
import { expect } from 'vitest'
import type { StoredDocument } from '../src/documents/store.ts'
import type { FoundDocuments } from '../src/engine/calls/outcomes.ts'
import { SentDocuments } from '../src/engine/runners/sent-documents.ts'
import { Host, prepareRealm } from '../src/runner/host.ts'
import type { Progress } from '../src/runner/kernel/progress.ts'
import { FrameReader, FrameWriter } from '../src/runner/protocol/frames.ts'
import {
  decodeFromRunner,
  encodeDocuments,
  encodeForget,
  encodeInvoke,
  encodeRejection,
  encodeReply,
  type FromRunner,
} from '../src/runner/protocol/messages.ts'
import type { Operation } from '../src/runner/protocol/operations.ts'
import type { FunctionalIdentity } from '../src/value/identities.ts'
import { scriptOf } from './runners.ts'

const LIMITS = { cpuMillis: 1_000, resultBytes: 1_000_000, actions: false, fixedClock: false }
export const ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const SCHEMA = `tables({ notes: { fields: {}, indexes: [
  { name: 'byBoth', fields: ['a', 'b'], unique: false },
  { name: 'byA', fields: ['a'], unique: true },
] } })`

type RejectedOperation = { readonly name: string; readonly message: string }
export type Answer = (op: Operation) => string | FoundDocuments | RejectedOperation | null

export class Driver {
  readonly loaded: FromRunner
  readonly #output = new FrameWriter()
  readonly #host: Host
  /** The documents that the host still holds. */
  readonly #sent: SentDocuments
  #call = 0

  constructor(functions: string, schema = SCHEMA, sent = new SentDocuments()) {
    this.#sent = sent
    const progress = { begin() {}, end() {} } as unknown as Progress
    const cpuMicros = () => performance.now() * 1000
    const source = scriptOf(functions, schema)
    const emit = (text: string) => this.#output.append(text)
    // Rejections are not observed here, since the test runner would report them too.
    const rejections = { flush() {}, release() {} }
    const ports = { emit, progress, cpuMicros, rejections }
    this.#host = new Host(ports, prepareRealm(), { source, limits: LIMITS })
    this.loaded = decodeFromRunner(this.#host.load())
  }

  /** The identity of the caller. */
  identity: FunctionalIdentity | null = null

  run(name: string, argumentsText = '{}', answer: Answer = () => 'null', kind = 'query') {
    const call = ++this.#call
    const seen: Operation[] = []
    const documents: StoredDocument[] = []
    const nowMicros = 1_800_000_000_123_456n
    const seed = '0f'.repeat(32)
    const identityText = JSON.stringify(this.identity)
    const of = { function: `f.${name}`, kind: kind as 'query' }
    const request = { ...of, argumentsText, identityText, nowMicros, seed }
    this.#host.process(encodeInvoke(call, request, { root: 0, prefetched: null }))
    for (let rounds = 0; rounds < 1_000; rounds++) {
      for (const message of this.#messages()) {
        if (message.type !== 'operation') return { message, seen, documents }
        seen.push(message.op)
        const reply = answer(message.op)
        if (typeof reply === 'string') this.#host.process(encodeReply(call, message.id, reply))
        else if (reply !== null && 'documents' in reply) {
          documents.push(...reply.documents)
          this.#send(call, message.id, reply)
        } else if (reply !== null) {
          this.#host.process(
            encodeRejection(call, message.id, { code: null, violated: null, ...reply }),
          )
        }
      }
    }
    return { message: null, seen, documents }
  }

  #send(call: number, operation: number, { documents, page }: FoundDocuments): void {
    const items = this.#sent.items(documents)
    this.#host.process(encodeDocuments(call, operation, { items, page }))
    const first = this.#sent.trim()
    if (first !== null) this.#host.process(encodeForget(first))
  }

  #messages(): FromRunner[] {
    const found: FromRunner[] = []
    const bytes = Buffer.from(this.#output.take())
    new FrameReader().push(bytes, (text) => found.push(decodeFromRunner(text)))
    return found
  }
}

export function resultOf({ message }: ReturnType<Driver['run']>): unknown {
  expect(message).toMatchObject({ type: 'returned' })
  return message?.type === 'returned' && message.result
}

export function errorOf({ message }: ReturnType<Driver['run']>): string {
  expect(message).toMatchObject({ type: 'threw' })
  return message?.type === 'threw' ? `${message.error.name}: ${message.error.message}` : ''
}
