/**
 * Entry of the bundle that runs inside a fresh realm (build/embed-realm.ts). The process around the
 * realm calls nothing but what `createRealm` returns.
 */
import type { LoadLimits } from '../protocol/messages.ts'
import { type Bridge, connectBridge } from './bridge.ts'
import { chargedMicros } from './calls.ts'
import { Auth } from './ctx/auth.ts'
import { Configuration } from './ctx/configuration.ts'
import { MutationDatabase, QueryDatabase } from './ctx/database.ts'
import { RangeBuilder } from './ctx/range-builder.ts'
import { Scheduler } from './ctx/scheduler.ts'
import { Storage } from './ctx/storage.ts'
import { dispatch, endFrame } from './dispatch.ts'
import { encode } from './encoding.ts'
import { installGlobals } from './environment.ts'
import { report } from './error-reports.ts'
import { watchDefinitions } from './isolation/definitions.ts'
import { freezeShared } from './isolation/freezing.ts'
import type { EngineProperties } from './isolation/unfrozen.ts'
import { rememberUnfrozen } from './isolation/unfrozen-guard.ts'
import { setLimits } from './limits.ts'
import { deliverPipelined } from './pipelining.ts'
import { Rows } from './rows.ts'
import { recordRejection } from './unhandled-rejections.ts'
import { WatchedPromise } from './watched-promise.ts'
import { loadWorkspace } from './workspace.ts'
import type { Script } from './workspace-script.ts'

export interface Realm {
  /** The globals that the Workspace's script gets as parameters. */
  readonly globalNames: readonly string[]
  /** Runs the script once; returns the JSON text of an ErrorReport if it throws. */
  load(script: Script): string | null
  /** Processes one frame of the server, up to the microtasks that it queues. */
  dispatch(text: string): void
  /** Delivers the result of an operation that needs no frame; false if none is due. */
  deliverPipelined(): boolean
  /** Records a promise that was rejected in this frame and that no code has handled. */
  recordRejection(reason: unknown, promise: object): void
  /** CPU microseconds that are charged to the root of a call, up to its last segment. */
  spentMicros(call: number): number
  /** Ends a frame whose microtasks have run; with them it took `elapsedMicros` of the CPU. */
  endFrame(elapsedMicros: number): void
}

/** Classes of which code gets instances by `ctx`; no global leads to them. */
const CONTEXT_CLASSES = [
  Rows,
  RangeBuilder,
  QueryDatabase,
  MutationDatabase,
  Auth,
  Configuration,
  Scheduler,
  Storage,
  WatchedPromise,
]

/** Prepares this realm; `properties` are in the order of UNFROZEN. */
export function createRealm(
  bridge: Bridge,
  limits: LoadLimits,
  properties: readonly EngineProperties[],
): Realm {
  connectBridge(bridge)
  setLimits(limits)
  const globalNames = installGlobals()
  watchDefinitions()
  return {
    globalNames,
    load(script) {
      try {
        loadWorkspace(script, globalNames, { encode, report })
        freezeShared(CONTEXT_CLASSES)
        rememberUnfrozen(properties)
        return null
      } catch (thrown) {
        return report(thrown)
      }
    },
    dispatch,
    deliverPipelined,
    recordRejection,
    spentMicros: chargedMicros,
    endFrame,
  }
}
