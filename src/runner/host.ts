/**
 * Loads a Release into a fresh realm and processes the server's frames there, one after the other.
 * A Release is one script that calls `__svc.define({ schema, modules })`: `schema` has the property
 * `Symbol.for('svc.schema')`, `modules` maps each path below `functions/` to its exports, and an
 * export with the property `Symbol.for('svc.function')` is the Function `<path>.<export>`.
 */
import { drainMicrotasks } from 'bun:jsc'
import { AsyncLocalStorage } from 'node:async_hooks'
import vm from 'node:vm'
import { documentId, documentIdSource } from '../value/document-ids.ts'
import type { Progress } from './kernel/progress.ts'
import type { LoadLimits } from './protocol/messages.ts'
import { type Bridge, URL_PARTS } from './realm/bridge.ts'
import type { Realm } from './realm/entry.ts'
import { SCRIPT_NAME, scriptSource } from './realm/workspace-script.ts'
import { realmSource } from './realm-source.ts'
import type { Rejections } from './rejections.ts'

export interface HostPorts {
  /** Sends one frame to the server. */
  emit(text: string): void
  readonly progress: Progress
  /** CPU microseconds of this thread. */
  cpuMicros(): number
  /** Calls `rejected` for each promise whose rejection is unhandled. */
  readonly rejections: Rejections
}

/** A realm that waits for a Release: without a bridge, without limits and without its code. */
export interface EmptyRealm {
  readonly context: vm.Context
  readonly create: (bridge: Bridge, limits: LoadLimits) => Realm
}

/** Makes a realm before its Release is known, since that takes longer than to load most of them. */
export function prepareRealm(): EmptyRealm {
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, {
    codeGeneration: { strings: false, wasm: false },
  })
  const script = new vm.Script(realmSource(), { filename: 'svc-runtime.js' })
  return { context, create: script.runInContext(context) as EmptyRealm['create'] }
}

/** The script of a Release, with the limits of its calls. */
export interface HostedCode {
  readonly source: string
  readonly limits: LoadLimits
}

export class Host {
  readonly #ports: HostPorts
  readonly #realm: Realm
  readonly #script: string
  readonly #context: vm.Context
  /** CPU microseconds of the running call before the current segment. */
  #spentBefore = 0
  #startedMicros = 0
  /** True if a rejection that was reported before was handled in this frame. */
  #wasHandled = false
  /** True if a rejection was reported since the last flush. */
  #wasReported = false

  constructor(ports: HostPorts, { context, create }: EmptyRealm, { source, limits }: HostedCode) {
    this.#ports = ports
    this.#script = source
    this.#context = context
    this.#realm = create(this.#bridge(), limits)
  }

  /** Runs the script; returns the reply to the load. */
  load(): string {
    const { Script } = vm
    // Made inside the realm, so that the error of an import() belongs to that realm.
    const importError: unknown = vm.runInContext(
      'new TypeError("import() has nothing to load here: import it at the top")',
      this.#context,
    )
    let script: (...args: unknown[]) => void
    try {
      const compiled = new Script(scriptSource(this.#script, this.#realm.globalNames), {
        filename: SCRIPT_NAME,
        importModuleDynamically: () => {
          throw importError
        },
      })
      script = compiled.runInContext(this.#context) as typeof script
    } catch (error) {
      const { name, message } = error as Error
      return JSON.stringify(['loadFailed', [name, message, '']])
    }
    const report = this.#realm.load(script)
    // Rejections of the load belong to no call.
    this.#drain()
    return report === null ? '["loaded"]' : `["loadFailed",${report}]`
  }

  /** Processes a frame with everything that follows from it. */
  process(text: string): void {
    const call = callOf(text)
    const { progress, cpuMicros } = this.#ports
    this.#spentBefore = this.#realm.spentMicros(call)
    progress.begin(call, this.#spentBefore)
    this.#startedMicros = cpuMicros()
    this.#realm.dispatch(text)
    this.#drain()
    this.#realm.endFrame(Math.round(cpuMicros() - this.#startedMicros))
    progress.end()
  }

  /** Receives a promise whose rejection is unhandled. */
  rejected(reason: unknown, promise: object): void {
    this.#wasReported = true
    this.#realm.recordRejection(reason, promise)
  }

  /**
   * Runs everything that is queued: what is left to the next frame would be charged to its call.
   * The reason of a rejection may have accessors, which queue more.
   */
  #drain(): void {
    const { rejections } = this.#ports
    do {
      this.#wasReported = false
      do drainMicrotasks()
      while (this.#realm.deliverPipelined())
      rejections.flush()
    } while (this.#wasReported)
    if (!this.#wasHandled) return
    this.#wasHandled = false
    rejections.release()
  }

  #spentMicros(): number {
    return Math.round(this.#spentBefore + this.#ports.cpuMicros() - this.#startedMicros)
  }

  #bridge(): Bridge {
    const { emit } = this.#ports
    const running = new AsyncLocalStorage<object>()
    return Object.assign(Object.create(null), {
      emit,
      runAs: (call: object, task: () => void) => running.run(call, task),
      callOfRunningCode: () => running.getStore(),
      documentId: (table: string, nowMicros: string, seed: string, count: number) => {
        Bun.SHA256.hash(documentIdSource(seed, count), digest)
        return documentId(table, { nowMicros: BigInt(nowMicros), count, digest })
      },
      rejectionHandled: () => {
        this.#wasHandled = true
      },
      spentMicros: () => this.#spentMicros(),
      nowMicros: () => Date.now() * 1000,
      ...TEXT_BRIDGE,
      ...URL_BRIDGE,
    } satisfies Bridge)
  }
}

/** Reads the call of a frame, which is its second part, without parsing the frame. */
function callOf(text: string): number {
  let call = 0
  for (let i = text.indexOf(',') + 1; ; i++) {
    const digit = text.charCodeAt(i) - 0x30
    if (!(digit >= 0 && digit <= 9)) return call
    call = call * 10 + digit
  }
}

const digest = new Uint8Array(32)
const encoder = new TextEncoder()
const lenient = new TextDecoder('utf-8', { ignoreBOM: false })
const lenientMark = new TextDecoder('utf-8', { ignoreBOM: true })
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
const strictMark = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const TEXT_BRIDGE = {
  utf8Length: (text: string) => Buffer.byteLength(text),
  utf8Write(text: string, into: Uint8Array): number {
    const { read, written } = encoder.encodeInto(text, into)
    return written * 2 ** 32 + read
  },
  utf8Read(bytes: Uint8Array, isStrict: boolean, keepMark: boolean): string | null {
    if (!isStrict) return (keepMark ? lenientMark : lenient).decode(bytes)
    return orNull(() => (keepMark ? strictMark : strict).decode(bytes))
  },
  fromBase64: (text: string) => orNull(() => atob(text)),
  toBase64: (text: string) => orNull(() => btoa(text)),
}

const URL_BRIDGE = {
  parseUrl: (text: string, base: string | null) =>
    orNull(() => urlLines(base === null ? new URL(text) : new URL(text, base))),
  setUrlPart: (href: string, part: string, value: string) =>
    orNull(() => {
      const url = new URL(href)
      Reflect.set(url, part, value)
      return urlLines(url)
    }),
}

function urlLines(url: URL): string {
  return [url.href, ...URL_PARTS.map((part) => url[part])].join('\n')
}

function orNull(make: () => string): string | null {
  try {
    return make()
  } catch {
    return null
  }
}
