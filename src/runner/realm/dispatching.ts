/** The way of a script and of each frame into the realm. */
import type { Bridge } from './bridge.ts'
import type { Call, Calls, makeEndings, makeOperations } from './calls.ts'
import type { makeRun } from './handlers.ts'
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

/** Works the frames of the server. */
export function makeDispatch(
  bridge: Bridge,
  calls: Calls,
  workspace: Workspace,
  parts: {
    readonly operations: ReturnType<typeof makeOperations>
    readonly endings: ReturnType<typeof makeEndings>
    readonly run: ReturnType<typeof makeRun>
  },
): (text: string) => void {
  const { parse } = JSON

  function invoke(message: readonly unknown[]): void {
    const [, id, name, , nowMicros, seed, args] = message as [
      ...[string, number, string, string, string, string],
      unknown,
    ]
    const definition = workspace.functions.get(name)
    const call: Call = {
      id,
      definition: definition ?? { kind: 'query', errors: {}, handler: missing },
      nowMicros,
      seed,
      stream: null,
      usedClock: false,
      usedRandom: false,
      spentMicros: 0,
      finished: false,
      pending: 0,
      unwatched: new Map(),
      lines: [],
    }
    calls.active.set(id, call)
    calls.current = call
    void parts.run(call, args)
  }

  function missing(): never {
    throw new TypeError('the code has no such Function, although its manifest does')
  }

  return (text) => {
    const message = parse(text) as readonly [string, number, number, never, string]
    const [type, id, operation] = message
    if (type === 'invoke') return invoke(message)
    if (type === 'describe') return bridge.emit(`["description",${id},${workspace.description()}]`)
    const call = calls.active.get(id)
    if (call === undefined) return
    calls.current = call
    if (type === 'reply') parts.operations.reply(operation, message[3])
    else if (type === 'refuse') parts.operations.refuse(operation, message[3], message[4])
    else if (type === 'cancel') parts.endings.drop(call)
  }
}
