/** Reports each call of an engine with its duration and its outcome. */
import type { Engine } from '../../engine/engine.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import { isFault, reasonText } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'

export interface ObservedCall {
  readonly kind: string
  readonly function: string
  /** `ok`, or the code of the error. */
  readonly outcome: string
  readonly detail: string | null
  readonly durationMillis: number
}

/** Wraps an engine. It delays no reply; `onCall` must not throw. */
export function observeCalls(
  engine: Engine,
  system: Pick<System, 'monotonicMillis'>,
  onCall: (call: ObservedCall) => void,
): Engine {
  function observe<T>({ definition }: QueryRequest, call: () => T): T {
    const startedMillis = system.monotonicMillis()
    const end = (error: unknown, failed: boolean): void =>
      onCall({
        kind: definition.kind,
        function: definition.name,
        ...(failed ? outcomeOf(error) : { outcome: 'ok', detail: null }),
        durationMillis: system.monotonicMillis() - startedMillis,
      })
    let result: T
    try {
      result = call()
    } catch (error) {
      end(error, true)
      throw error
    }
    if (result instanceof Promise) {
      result.then(
        () => end(null, false),
        (error: unknown) => end(error, true),
      )
    } else end(null, false)
    return result
  }
  return {
    ...engine,
    query: (request) => observe(request, () => engine.query(request)),
    mutation: (request) => observe(request, () => engine.mutation(request)),
    action: (request) => observe(request, () => engine.action(request)),
  }
}

function outcomeOf(error: unknown): Pick<ObservedCall, 'outcome' | 'detail'> {
  if (!isFault(error)) return { outcome: 'INTERNAL', detail: null }
  return { outcome: error.code, detail: reasonText(error) }
}
