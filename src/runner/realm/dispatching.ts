/** The way of a script and of each frame into the realm. */
import type { FunctionalIdentity } from '../../value/identities.ts'
import type { Bridge } from './bridge.ts'
import type { Call, Calls, makeEndings, makeReplies, RefusedFrame } from './calls.ts'
import type { makeDocuments, SentItem } from './documents.ts'
import type { makeRun } from './handlers.ts'
import type { makeReport } from './reports.ts'
import type { makeReadWorkspace, Workspace } from './workspace.ts'

/** The compiled script: a function of `__svc` and the globals that it gets as parameters. */
export type Script = (svc: unknown, ...globals: unknown[]) => void

/** Runs the script and reads what it defines. */
export function makeLoad(
  readWorkspace: ReturnType<typeof makeReadWorkspace>,
  globalNames: readonly string[],
) {
  return (script: Script): Workspace => {
    let workspace: Workspace | null = null
    type Given = {
      schema: Parameters<typeof readWorkspace>[0]
      modules: Parameters<typeof readWorkspace>[1]
    }
    const define = ({ schema, modules }: Given): void => {
      workspace = readWorkspace(schema, modules)
    }
    const scope = globalThis as Readonly<Record<string, unknown>>
    script(Object.freeze({ define }), ...globalNames.map((name) => scope[name]))
    if (workspace === null) throw new TypeError('the script defines no Workspace')
    return workspace
  }
}

/** Works a reply of documents: one or none by its ID, or those of a range. */
export function makeFound(
  calls: Calls,
  documents: ReturnType<typeof makeDocuments>,
  replies: ReturnType<typeof makeReplies>,
) {
  return (message: readonly unknown[]): void => {
    const [, id, operation, items, cursor, done] = message as [
      ...[string, number, number, readonly SentItem[]],
      ...[string | null | undefined, boolean | undefined],
    ]
    const call = calls.active.get(id)
    calls.current = call ?? null
    // Also for a call that has ended meanwhile: the server counts on their being here.
    const found = documents.receive(items, call?.handed ?? null)
    if (call === undefined) return
    replies.found(
      operation,
      done === undefined ? (found[0] ?? null) : { documents: found, cursor, done },
    )
  }
}

/** A call that has done nothing yet. */
export function makeNewCall() {
  type Given = 'id' | 'definition' | 'nowMicros' | 'seed' | 'identity' | 'root' | 'isSpeculative'

  return (given: Pick<Call, Given>): Call => ({
    id: given.id,
    definition: given.definition,
    nowMicros: given.nowMicros,
    seed: given.seed,
    stream: null,
    usedClock: false,
    usedRandom: false,
    identity: given.identity,
    usedIdentity: false,
    spentMicros: 0,
    finished: false,
    root: given.root,
    asked: 0,
    open: 0,
    pending: 0,
    timers: new Map(),
    timeouts: 0,
    wakes: [],
    handed: { count: 0, copies: new Map() },
    unwatched: new Map(),
    rejected: null,
    isSpeculative: given.isSpeculative,
    given: new Map(),
    inserts: 0,
    told: '',
    toldInRow: 0,
    answers: [],
    isDone: false,
    lines: '',
    lineCount: 0,
  })
}

/** Works the frames of the server. */
export function makeDispatch(
  bridge: Bridge,
  calls: Calls,
  workspace: Workspace,
  newCall: ReturnType<typeof makeNewCall>,
  parts: {
    readonly documents: ReturnType<typeof makeDocuments>
    readonly found: ReturnType<typeof makeFound>
    readonly replies: ReturnType<typeof makeReplies>
    readonly endings: ReturnType<typeof makeEndings>
    readonly run: ReturnType<typeof makeRun>
  },
): (text: string) => void {
  const { parse } = JSON

  function invoke(message: readonly unknown[]): void {
    const [, id, name, , nowMicros, seed, root, args, identity, ahead] = message as [
      ...[string, number, string, string, string, string, number],
      ...[unknown, FunctionalIdentity | null, readonly SentItem[] | null],
    ]
    const definition = workspace.functions.get(name)
    const call = newCall({
      id,
      definition: definition ?? { kind: 'query', auth: 'none', errors: {}, handler: missing },
      nowMicros,
      seed,
      identity,
      root: calls.active.get(root) ?? null,
      isSpeculative: ahead !== null,
    })
    if (ahead !== null) {
      for (const copy of parts.documents.receive(ahead, call.handed)) {
        call.given.set((copy as { readonly _id: string })._id, copy as object)
      }
    }
    calls.active.set(id, call)
    calls.current = call
    bridge.enter(call, () => void parts.run(call, args))
  }

  function missing(): never {
    throw new TypeError('the code has no such Function, although its manifest does')
  }

  return (text) => {
    const message = parse(text) as readonly [string, number, number, never]
    const [type, id, operation] = message
    if (type === 'invoke') return invoke(message)
    if (type === 'documents') return parts.found(message)
    if (type === 'forget') return parts.documents.forget(operation)
    if (type === 'describe') return bridge.emit(`["description",${id},${workspace.description()}]`)
    const call = calls.active.get(id)
    if (call === undefined) return
    calls.current = call
    if (type === 'reply') parts.replies.reply(operation, message[3])
    else if (type === 'refuse') parts.replies.refuse(message as unknown as RefusedFrame)
    else if (type === 'cancel') parts.endings.drop(call)
  }
}

/** After each frame: ends calls that are done, took too much, or have nothing to go on. */
export function makeSettle(
  calls: Calls,
  endings: ReturnType<typeof makeEndings>,
  report: ReturnType<typeof makeReport>,
  cpuMicrosMax: number,
  restore: () => string | null,
): (elapsedMicros: number) => void {
  return (elapsedMicros) => {
    const { current } = calls
    // Before anything else is done with what may have been changed. No code of an author runs here.
    const changed = restore()
    if (changed !== null && current !== null) {
      const message = `"${changed}" of Array or its prototype was changed, which all calls share`
      endings.threw(current, report(new TypeError(message), null))
    }
    if (calls.done.length > 0) for (const end of calls.done.splice(0)) end()
    calls.current = null
    if (calls.guests.length > 0) calls.guests.length = 0
    if (current !== null) {
      const charged = current.root ?? current
      charged.spentMicros += elapsedMicros
      if (charged.spentMicros > cpuMicrosMax) endings.cpu(charged)
    }
    if (calls.waiting.size > 0) return
    for (const stuck of calls.active.values()) {
      const message = 'the Function waits for a promise that nothing will settle'
      endings.threw(stuck, report(new Error(message), null))
    }
  }
}
