/** `svc dev --attach`: synchronizes a Workspace into a shared Environment on each save. */
import { Fault, isFault } from '../../../errors/fault.ts'
import type { ProjectId, WorkspaceRevisionId } from '../../../value/ids.ts'
import type { Frozen, WorkspaceState } from '../../../wire/releases.ts'
import type { CommandSpec, Context } from '../../contexts.ts'
import type { DevelopmentEvent } from '../../development/events.ts'
import type { SharedEnvironment } from '../../development/workspace-tools.ts'
import { check, requireTools } from '../../packages.ts'
import { readProvenance } from '../../provenance/provenance.ts'
import { isUnsent } from '../../requests/requests.ts'
import { EMPTY, type Expected } from '../../roots/remotes.ts'
import { freezeHead, openShared, readHead, type Shared, synchronize } from './shared-workspaces.ts'

export interface AttachOptions {
  readonly url: string
  /** Environment variable with the development key; undefined for the usual one. */
  readonly variable: string | undefined
  /** Absolute. */
  readonly workspaceDirectory: string
  /** True if each state is frozen too. */
  readonly freezes: boolean
  readonly report: (event: DevelopmentEvent) => void
}

/** Runs until it is interrupted. Rejects with a failure after which no save can succeed. */
export async function attach(
  context: Context,
  command: CommandSpec,
  options: AttachOptions,
): Promise<void> {
  const { workspaceDirectory, report } = options
  const shared = openShared(context, command, options)
  const tools = await requireTools(context, 'Development')
  context.endsInOrder()
  const { signal } = context
  const synchronization = new Synchronization(shared, command, options)
  const attached = { workspaceDirectory, shared: synchronization, report, signal }
  await context.uninterrupted(tools.attach(attached))
}

/** The HEAD as this command knows it. */
interface Known {
  readonly projectId: ProjectId
  head: WorkspaceState['head']
  /** Digest of the package of a request whose response was lost; null for none. */
  uncertain: string | null
  /** True once a synchronized state was reported. */
  isReported: boolean
}

/** Codes of the server that only a change of the source can end. */
const OF_SOURCE = [
  'PRODUCT_INVALID',
  'PRODUCT_INCOMPATIBLE',
  'PRODUCT_STATE_CONFLICT',
  'LIMIT_EXCEEDED',
] as const

type Build = Parameters<SharedEnvironment['synchronize']>[0]

class Synchronization implements SharedEnvironment {
  readonly #shared: Shared
  readonly #command: CommandSpec
  readonly #options: AttachOptions
  /** The Workspaces by name, which an edit of svc.json may change. */
  readonly #known = new Map<string, Known>()

  constructor(shared: Shared, command: CommandSpec, options: AttachOptions) {
    this.#shared = shared
    this.#command = command
    this.#options = options
  }

  async projectOf(workspace: string): Promise<ProjectId> {
    const known = this.#known.get(workspace)
    if (known !== undefined) return known.projectId
    const { projectId, environmentId, head } = await readHead(this.#shared, workspace)
    this.#known.set(workspace, { projectId, head, uncertain: null, isReported: false })
    const revisionId = head?.revisionId ?? null
    const url = this.#shared.origin
    this.#options.report({ event: 'attached', url, environmentId, workspace, revisionId })
    return projectId
  }

  async synchronize(build: Build): Promise<void> {
    const { workspace, frame } = build
    const known = this.#known.get(workspace)!
    const { packageDigest } = await check(frame)
    if (known.uncertain !== null) await this.#resolve(workspace, known, known.uncertain)
    const isChanged = known.head?.packageDigest !== packageDigest
    if (isChanged) await this.#publish(build, known, packageDigest)
    const needsFreeze = this.#options.freezes && known.head!.state !== 'validated'
    const frozen = needsFreeze ? await this.#freeze(workspace, known) : null
    if (isChanged || frozen?.state === 'validated' || !known.isReported) this.#report(build, known)
    known.isReported = true
    const failed = frozen?.checks.filter(({ outcome }) => outcome === 'failed') ?? []
    if (failed.length > 0) throw incompatible(failed)
  }

  isOfSource(error: unknown): boolean {
    return isFault(error, ...OF_SOURCE)
  }

  /** Finds out whether the request whose response was lost has moved the HEAD. */
  async #resolve(workspace: string, known: Known, packageDigest: string): Promise<void> {
    const { head } = await readHead(this.#shared, workspace)
    if (head?.packageDigest === packageDigest) known.head = head
    known.uncertain = null
  }

  async #publish({ workspace, frame }: Build, known: Known, packageDigest: string): Promise<void> {
    const { context } = this.#shared
    const directory = this.#options.workspaceDirectory
    const declared = { message: undefined, directory }
    const provenance = await readProvenance(context, this.#command, declared)
    const expectedHead: Expected<WorkspaceRevisionId> = known.head?.revisionId ?? EMPTY
    const input = { workspace, frame, expectedHead, provenance }
    const { revisionId, releaseId } = await synchronize(this.#shared, input).catch((error) => {
      if (isFault(error, 'CLIENT_SERVER_UNREACHABLE') && !isUnsent(error)) {
        known.uncertain = packageDigest
      }
      throw error
    })
    known.head = { revisionId, releaseId, state: 'published', packageDigest }
  }

  async #freeze(workspace: string, known: Known): Promise<Frozen> {
    const { revisionId } = known.head!
    const frozen = await freezeHead(this.#shared, { workspace, revisionId })
    known.head = { ...known.head!, state: frozen.state }
    return frozen
  }

  #report({ workspace, frame, startedAt, warnings }: Build, { head }: Known): void {
    const { system } = this.#shared.context.environment
    const { revisionId, releaseId, state } = head!
    this.#options.report({
      event: 'synchronized',
      workspace,
      revisionId,
      releaseId,
      state,
      bytes: frame.length,
      durationMillis: Math.round(system.monotonicMillis() - startedAt),
      warnings: [...warnings],
    })
  }
}

/** Returns the failure of a Release with failed checks. */
export function incompatible(failed: Frozen['checks']): Fault {
  const violations = failed.map(({ name, detail }) => ({ path: `checks.${name}`, rule: detail }))
  return new Fault('PRODUCT_INCOMPATIBLE', { violations })
}
