/** `svc dev --attach`: builds a Workspace after each change for a shared Environment. */
import type { AttachRequest } from '../../client/development/workspace-tools.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import type { Describe, WorkspaceBuild } from '../building/build.ts'
import { encodeWorkspacePackage } from '../building/package.ts'
import { type Save, SaveLoop } from '../saves/save-loop.ts'
import type { StartTypeChecker } from '../type-check/type-check.ts'
import { formatProblem } from '../workspace/problems.ts'
import { withoutLinks } from '../workspace/workspace-files.ts'

export interface AttachedRequest extends AttachRequest {
  readonly describe: Describe
  /** Absent if types are not checked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
}

/** Failures after which no save can succeed: another HEAD, another key or another Environment. */
const FINAL = [
  'PRODUCT_CAS_CONFLICT',
  'ROUTE_NOT_FOUND',
  'APPLICATION_KEY_REQUIRED',
  'APPLICATION_KEY_INVALID',
  'TARGET_DENIED',
  'CLIENT_RESPONSE_INVALID',
] as const

/** Synchronizes until `signal` fires. Rejects with a failure after which no save can succeed. */
export async function runAttached(request: AttachedRequest): Promise<void> {
  const { shared, describe, report, signal } = request
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })
  if (signal.aborted) ended.resolve()
  const saves = new SaveLoop({
    system: realSystem(),
    workspaceDirectory: withoutLinks(request.workspaceDirectory),
    ignored: new Set(),
    report: (event) => {
      // The command prints the reason when it ends.
      if (event.event !== 'rejected' || !isFinal(event.code)) report(event)
    },
    startTypeChecker: request.startTypeChecker,
    update: (save) => synchronize(save),
    isOfSource: (error) => {
      if (isFault(error) && isFinal(error.code)) ended.reject(error)
      if (!(error instanceof Fault)) return true
      return isFault(error, 'WORKSPACE_INVALID', ...FINAL) || shared.isOfSource(error)
    },
  })
  async function synchronize({ build, startedAt }: Save): Promise<WorkspaceBuild> {
    const built = await build(describe)
    const { workspace } = built
    const frame = encodeWorkspacePackage(built, await shared.projectOf(workspace))
    const warnings = built.diagnostics.map(formatProblem)
    await shared.synchronize({ workspace, frame, startedAt, warnings })
    return built
  }
  try {
    await Promise.race([saves.update(), ended.promise])
    await ended.promise
  } finally {
    await saves.close()
  }
}

function isFinal(code: string): boolean {
  return (FINAL as readonly string[]).includes(code)
}
