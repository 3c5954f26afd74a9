/** The routes of the linked Environment, one function each. */
import { Fault, isFault } from '../errors/fault.ts'
import type { OperationId, ReleaseId, WorkspaceRevisionId } from '../value/ids.ts'
import { PACKAGE_MEDIA_TYPE } from '../value/packages/workspace-package.ts'
import { FunctionCatalog, TableCatalog } from '../wire/catalogs.ts'
import { Promoted } from '../wire/channels.ts'
import {
  ConfigurationChanged,
  ConfigurationHistory,
  ConfigurationList,
} from '../wire/configuration.ts'
import {
  EnvironmentChanged,
  type EnvironmentConfigurationField,
  EnvironmentState,
} from '../wire/environment.ts'
import type { LocalServer } from '../wire/files/local-server.ts'
import { Health } from '../wire/health.ts'
import { OPERATION_ID_HEADER } from '../wire/idempotency-records.ts'
import { MetricsReport } from '../wire/metrics.ts'
import { PackageChecked, Retired, Validated } from '../wire/releases.ts'
import { ServingPolicy, ServingPolicyChanged } from '../wire/serving-policy.ts'
import { Status } from '../wire/status.ts'
import {
  EXPECTED_HEAD_HEADER,
  PROVENANCE_HEADER,
  type Provenance,
  Published,
} from '../wire/workspace.ts'
import type { Context } from './contexts.ts'
import { explanation } from './explanations.ts'
import { encodedProvenance } from './provenance/provenance.ts'
import { openRoot, type Root, readLink } from './roots.ts'
import { OperatorSession } from './sessions.ts'
import { usage } from './usage.ts'

/** Milliseconds for a package of 64 MiB at 256 KiB/s and the checks of the server. */
export const PUBLISH_DEADLINE_MS = 300_000
/** Milliseconds to build indexes of stored documents, which takes 10 s for each million. */
export const VALIDATE_DEADLINE_MS = 1_200_000
const CATALOG_BYTES_MAX = 16 * 1024 * 1024
/** Bytes of 1,000 entries whose values were sent in bodies of at most 72 KiB. */
const CONFIGURATION_BYTES_MAX = 80 * 1024 * 1024

export interface Remote extends Root {
  readonly session: OperatorSession
  /** Path of the routes of the Environment. */
  readonly base: string
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
    const { openNearest } = await import('./development/local-servers.ts')
    return withBase(await openNearest(context, path))
  }
  const root = await openRoot(context.environment, path)
  const origin = await readLink(root.directory)
  if (origin === null) {
    if (dev !== undefined && !remote) {
      const { openLocal } = await import('./development/local-servers.ts')
      const local = await openLocal(context, root)
      if (local !== null) return withBase(local)
    }
    const local = dev === undefined ? '' : ', or serve the root on this machine with `svc dev`'
    throw new Fault('CLIENT_ROOT_INVALID', {
      detail: `${root.directory} is not linked to a server.`,
      cause: explanation({ next: `Run \`svc link --root ${path ?? '.'}\`${local}.` }),
    })
  }
  const session = await OperatorSession.open(context)
  requireOrigin(session, origin, 'The root is linked to')
  return withBase({ ...root, session, local: null })
}

function withBase(root: Omit<Remote, 'base'>): Remote {
  return { ...root, base: basePath(root.descriptor) }
}

/** Compares the origins. `needs` begins the message. Throws CLIENT_ORIGIN_MISMATCH. */
export function requireOrigin(session: OperatorSession, origin: string, needs: string): void {
  const { managementOrigin } = session.profile
  if (managementOrigin === origin) return
  throw new Fault('CLIENT_ORIGIN_MISMATCH', {
    detail: `${needs} ${origin}; the session belongs to ${managementOrigin}.`,
  })
}

export function basePath(scope: {
  readonly projectId: string
  readonly environmentId: string
}): string {
  return `/v1/projects/${scope.projectId}/environments/${scope.environmentId}`
}

export function readStatus({ session, base }: Pick<Remote, 'session' | 'base'>): Promise<Status> {
  return session.management({
    method: 'GET',
    path: `${base}/status`,
    reply: Status,
    replay: 'safe',
  })
}

/** Reads the status and the serving policy, of which the status only has the revisions. */
export async function readStatusAndPolicy(remote: Remote) {
  const status = await readStatus(remote)
  const policy = status.servingPolicy === null ? null : await readServingPolicy(remote)
  return { status, policy }
}

export function readHealth({ session, base }: Remote): Promise<Health> {
  return session.management({
    method: 'GET',
    path: `${base}/instances/healthz`,
    reply: Health,
    replay: 'safe',
  })
}

export function readMetrics({ session, base }: Remote): Promise<MetricsReport> {
  return session.management({
    method: 'GET',
    path: `${base}/metrics`,
    reply: MetricsReport,
    replay: 'safe',
  })
}

/** Publishes a package; equal bytes with an equal expected head are published only once. */
export function publish(
  { session, base }: Remote,
  input: {
    readonly frame: Uint8Array
    readonly expectedHead: Expected<WorkspaceRevisionId>
    readonly provenance: Provenance | null
  },
): Promise<Published> {
  return session.management({
    method: 'POST',
    path: `${base}/workspace/publish`,
    headers: {
      [EXPECTED_HEAD_HEADER]: input.expectedHead,
      ...(input.provenance !== null && {
        [PROVENANCE_HEADER]: encodedProvenance(input.provenance),
      }),
    },
    body: input.frame,
    contentType: PACKAGE_MEDIA_TYPE,
    reply: Published,
    replay: 'safe',
    deadlineMs: PUBLISH_DEADLINE_MS,
  })
}

/** Makes the checks of a validation without a publication: nothing changes. */
export function checkPackage(
  { session, base }: Remote,
  { frame, against }: { readonly frame: Uint8Array; readonly against: string | undefined },
): Promise<PackageChecked> {
  return session.management({
    method: 'POST',
    path: `${base}/workspace/check${against === undefined ? '' : `?against=${against}`}`,
    body: frame,
    contentType: PACKAGE_MEDIA_TYPE,
    reply: PackageChecked,
    replay: 'safe',
    deadlineMs: VALIDATE_DEADLINE_MS,
  })
}

/** Validates a Release. Throws CLIENT_RESULT_UNCERTAIN for a lost response. */
export async function validate(
  { session, base }: Remote,
  { releaseId, against }: { readonly releaseId: ReleaseId; readonly against: string | undefined },
): Promise<Validated> {
  try {
    return await session.management({
      method: 'POST',
      path: `${base}/releases/${releaseId}`,
      body: against === undefined ? {} : { against },
      subjects: { releaseId, ...(against !== undefined && { against }) },
      reply: Validated,
      replay: 'safe',
      deadlineMs: VALIDATE_DEADLINE_MS,
    })
  } catch (error) {
    if (!isFault(error, 'CLIENT_SERVER_UNREACHABLE')) throw error
    throw new Fault('CLIENT_RESULT_UNCERTAIN', {
      detail: 'The server may still validate it.',
      cause: explanation({ next: `Repeat the command with \`--release ${releaseId}\`.` }),
    })
  }
}

export interface Promotion {
  readonly channel: string
  readonly releaseId: ReleaseId
  readonly expectedReleaseId: Expected<ReleaseId> | undefined
}

/** Binds a Channel. A lost response is reconciled with the status, never repeated. */
export function promote(
  { session, base }: Remote,
  { channel, releaseId, expectedReleaseId }: Promotion,
): Promise<Promoted> {
  return session.management({
    method: 'PUT',
    path: `${base}/channels/${channel}`,
    body: expectedReleaseId === undefined ? { releaseId } : { releaseId, expectedReleaseId },
    subjects: { channel, releaseId },
    reply: Promoted,
    replay: 'unsafe',
  })
}

export interface Rollback {
  readonly channel: string
  readonly targetReleaseId: ReleaseId
  readonly expectedReleaseId: ReleaseId
}

/** Rolls a Channel back. A lost response is reconciled with the status, never repeated. */
export function rollback({ session, base }: Remote, { channel, ...body }: Rollback) {
  return session.management({
    method: 'POST',
    path: `${base}/channels/${channel}/rollback`,
    body,
    subjects: { channel, targetReleaseId: body.targetReleaseId },
    reply: Promoted,
    replay: 'unsafe',
  })
}

export function retire({ session, base }: Remote, releaseId: ReleaseId) {
  return session.management({
    method: 'POST',
    path: `${base}/releases/${releaseId}/retire`,
    subjects: { releaseId },
    reply: Retired,
    replay: 'safe',
  })
}

export function readFunctions({ session, base }: Remote, target: string) {
  return session.management({
    method: 'GET',
    path: `${base}/functions?target=${encodeURIComponent(target)}`,
    subjects: { target },
    reply: FunctionCatalog,
    replay: 'safe',
    responseBytesMax: CATALOG_BYTES_MAX,
  })
}

export function readTables({ session, base }: Remote, target: string) {
  return session.management({
    method: 'GET',
    path: `${base}/schema/tables?target=${encodeURIComponent(target)}`,
    reply: TableCatalog,
    replay: 'safe',
    responseBytesMax: CATALOG_BYTES_MAX,
  })
}

export function listConfiguration({ session, base }: Remote) {
  return session.management({
    method: 'GET',
    path: `${base}/configuration`,
    reply: ConfigurationList,
    replay: 'safe',
    responseBytesMax: CONFIGURATION_BYTES_MAX,
  })
}

export function readConfigurationHistory(
  { session, base }: Remote,
  page: { readonly limit?: string | undefined; readonly after?: string | undefined },
) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(page)) if (value !== undefined) query.set(name, value)
  return session.management({
    method: 'GET',
    path: `${base}/configuration/history?${query}`,
    reply: ConfigurationHistory,
    replay: 'safe',
  })
}

export interface ConfigurationEdit {
  readonly operationId: OperationId
  readonly name: string
  /** The revision that the configuration must have. */
  readonly expectedRevision: string
  readonly changedAtMicros: string
  /** Null deletes the name. */
  readonly content: { readonly kind: 'variable' | 'secret'; readonly value: string } | null
}

/** Changes the configuration; the Operation ID makes a repeat safe. */
export function editConfiguration(
  { session, base }: Remote,
  { operationId, name, content, ...expected }: ConfigurationEdit,
) {
  return session.management({
    method: content === null ? 'DELETE' : 'PUT',
    path: `${base}/configuration/${name}`,
    subjects: { name },
    headers: { [OPERATION_ID_HEADER]: operationId },
    body: { ...expected, ...content },
    reply: ConfigurationChanged,
    replay: 'safe',
  })
}

export function readEnvironment({ session, base }: Remote) {
  return session.management({
    method: 'GET',
    path: base,
    reply: EnvironmentState,
    replay: 'safe',
  })
}

interface RevisionChange {
  readonly operationId: OperationId
  /** The revision that must be the newest. */
  readonly expectedRevision: string
  readonly changedAtMicros: string
}

/** Changes the Environment; the Operation ID makes a repeat safe. */
export function changeEnvironment(
  { session, base }: Remote,
  { operationId, ...expected }: RevisionChange,
  change:
    | { readonly verb: 'update'; readonly configuration: EnvironmentConfigurationField }
    | { readonly verb: 'archive' | 'restore' },
) {
  return session.management({
    method: change.verb === 'update' ? 'PUT' : 'POST',
    path: change.verb === 'update' ? base : `${base}/${change.verb}`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    body:
      change.verb === 'update' ? { ...expected, configuration: change.configuration } : expected,
    reply: EnvironmentChanged,
    replay: 'safe',
  })
}

export function readServingPolicy({ session, base }: Remote) {
  return session.management({
    method: 'GET',
    path: `${base}/serving-policy`,
    reply: ServingPolicy,
    replay: 'safe',
  })
}

export interface PolicyChange extends RevisionChange {
  readonly mode: 'atomic' | 'weighted'
  readonly releases: readonly { readonly releaseId: ReleaseId; readonly weight: number }[]
}

/** Replaces the serving policy; the Operation ID makes a repeat safe. */
export function setServingPolicy(
  { session, base }: Remote,
  { operationId, releases, ...change }: PolicyChange,
) {
  return session.management({
    method: 'PUT',
    path: `${base}/serving-policy`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    body: { ...change, releases: releases.map((release) => ({ ...release })) },
    subjects: Object.fromEntries(
      releases.map(({ releaseId }, i) => [`releases[${i}].releaseId`, releaseId]),
    ),
    reply: ServingPolicyChanged,
    replay: 'safe',
  })
}
