/** The server of a command: the linked Environment, or the one of a `svc dev`. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { ReleaseId, WorkspaceRevisionId } from '../../value/ids.ts'
import type { LocalServer } from '../../wire/files/local-server.ts'
import { validateRelease } from '../../wire/operations/releases.ts'
import { readServingPolicy } from '../../wire/operations/serving-policy.ts'
import { readStatus } from '../../wire/operations/status.ts'
import { publishWorkspace } from '../../wire/operations/workspace.ts'
import type { Validated } from '../../wire/releases.ts'
import type { Provenance, Published } from '../../wire/workspace.ts'
import type { Context } from '../contexts.ts'
import { explanation } from '../explanations.ts'
import { publicationHeaders } from '../provenance/provenance.ts'
import type {
  AnyInput,
  EnvironmentCallArguments,
  EnvironmentOperation,
  ReplyOf,
} from '../requests/operation-requests.ts'
import type { OnBytes, OnLine } from '../requests/requests.ts'
import { OperatorSession } from '../sessions/sessions.ts'
import { usage } from '../usage.ts'
import { openRoot, type Root, readLink } from './roots.ts'

/** The operations of one Environment. */
export interface EnvironmentCalls {
  /** Sends the request of an operation, as `OperatorSession.call` does. */
  readonly call: <O extends EnvironmentOperation>(
    operation: O,
    ...input: EnvironmentCallArguments<O>
  ) => Promise<ReplyOf<O>>
  /** Reads the lines of a stream until it ends. */
  readonly lines: <O extends EnvironmentOperation>(
    operation: O,
    onLine: OnLine,
    ...input: EnvironmentCallArguments<O>
  ) => Promise<void>
  /** Reads the bytes of a response in their order, whose number has no bound. */
  readonly bytes: <O extends EnvironmentOperation>(
    operation: O,
    onBytes: OnBytes,
    ...input: EnvironmentCallArguments<O>
  ) => Promise<void>
}

export interface Remote extends Root, EnvironmentCalls {
  readonly session: OperatorSession
  /** The `svc dev` that is the server; null for a server that the root is linked to. */
  readonly local: LocalServer | null
}

/** The options by which commands find their server; `dev` is absent where it must be linked. */
export interface RemoteOptions {
  readonly root?: string | undefined
  readonly remote?: boolean
  readonly dev?: boolean
}

export const EMPTY = 'empty'
export type Expected<T extends string> = T | typeof EMPTY

/**
 * Opens the root, its link and the stored session, which must have one Management origin; or the
 * `svc dev` that serves a root without a link, or the nearest one with --dev. Throws CLIENT_USAGE,
 * CLIENT_ROOT_INVALID, CLIENT_NOT_LOGGED_IN, CLIENT_ORIGIN_MISMATCH.
 */
export async function openRemote(context: Context, options: RemoteOptions): Promise<Remote> {
  const { root: path, remote = false, dev } = options
  if (dev === true) {
    if (remote) throw usage('Give --remote or --dev, not both.')
    const { openNearest } = await import('./local-servers.ts')
    return withCalls(await openNearest(context, path))
  }
  const root = await openRoot(context.environment, path)
  const origin = await readLink(root.directory)
  if (origin === null) {
    if (dev !== undefined && !remote) {
      const { openLocal } = await import('./local-servers.ts')
      const local = await openLocal(context, root)
      if (local !== null) return withCalls(local)
    }
    const local = dev === undefined ? '' : ', or serve the root on this machine with `svc dev`'
    throw new Fault('CLIENT_ROOT_INVALID', {
      detail: `${root.directory} is not linked to a server.`,
      cause: explanation({ next: `Run \`svc link --root ${path ?? '.'}\`${local}.` }),
    })
  }
  const session = await OperatorSession.open(context)
  requireOrigin(session, origin, 'The root is linked to')
  return withCalls({ ...root, session, local: null })
}

function withCalls(root: Omit<Remote, keyof EnvironmentCalls>): Remote {
  return { ...root, ...environmentCalls(root.session, root.descriptor) }
}

export function environmentCalls(
  session: OperatorSession,
  { projectId, environmentId }: { readonly projectId: string; readonly environmentId: string },
): EnvironmentCalls {
  const within = (input: AnyInput = {}): AnyInput => {
    return { ...input, params: { ...input.params, projectId, environmentId } }
  }
  return {
    call: (operation, ...[input]) => session.anyCall(operation, within(input as AnyInput)),
    lines: (operation, onLine, ...[input]) =>
      session.anyLines(operation, onLine, within(input as AnyInput)),
    bytes: (operation, onBytes, ...[input]) =>
      session.anyBytes(operation, onBytes, within(input as AnyInput)),
  }
}

/** Compares the origins. `needs` begins the message. Throws CLIENT_ORIGIN_MISMATCH. */
export function requireOrigin(session: OperatorSession, origin: string, needs: string): void {
  const { managementOrigin } = session.profile
  if (managementOrigin === origin) return
  throw new Fault('CLIENT_ORIGIN_MISMATCH', {
    detail: `${needs} ${origin}; the session belongs to ${managementOrigin}.`,
  })
}

/** Reads the status and the serving policy, of which the status only has the revisions. */
export async function readStatusAndPolicy(remote: Remote) {
  const status = await remote.call(readStatus)
  const policy = status.servingPolicy === null ? null : await remote.call(readServingPolicy)
  return { status, policy }
}

/** A package to publish, and the head that its Workspace must have. */
export interface Publication {
  readonly frame: Uint8Array
  readonly expectedHead: Expected<WorkspaceRevisionId>
  readonly provenance: Provenance | null
}

export function publish(remote: Remote, { frame, ...declared }: Publication): Promise<Published> {
  return remote.call(publishWorkspace, { headers: publicationHeaders(declared), body: frame })
}

/** Validates a Release. Throws CLIENT_RESULT_UNCERTAIN for a lost response. */
export async function validate(
  remote: Remote,
  { releaseId, against }: { readonly releaseId: ReleaseId; readonly against: string | undefined },
): Promise<Validated> {
  try {
    return await remote.call(validateRelease, {
      params: { releaseId },
      body: { against },
      subjects: { releaseId, ...(against !== undefined && { against }) },
    })
  } catch (error) {
    if (!isFault(error, 'CLIENT_SERVER_UNREACHABLE')) throw error
    throw new Fault('CLIENT_RESULT_UNCERTAIN', {
      detail: 'The server may still validate it.',
      cause: explanation({ next: `Repeat the command with \`--release ${releaseId}\`.` }),
    })
  }
}
