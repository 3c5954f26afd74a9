/**
 * `svc release`: builds, publishes, validates and, with a Channel, promotes. Each step first checks
 * whether it is done already, so that an interrupted run can be repeated.
 */
import type { ReleaseId } from '../../value/ids.ts'
import { readStatus } from '../../wire/operations/status.ts'
import type { Validated } from '../../wire/releases.ts'
import type { Status } from '../../wire/status.ts'
import type { Provenance } from '../../wire/workspace.ts'
import { type CommandSpec, type Context, command, flag, option } from '../contexts.ts'
import { loadPackage, PACKAGE_OPTIONS, type PackageOptions, sourceDirectory } from '../packages.ts'
import { PROVENANCE_DETAILS, PROVENANCE_OPTIONS, readProvenance } from '../provenance/provenance.ts'
import {
  EMPTY,
  type Expected,
  openRemote,
  publish,
  type Remote,
  validate,
} from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { ARCHIVED, LINKED } from './operations.ts'
import { type Bound, boundIn, parseChannel, parseReleaseId, promoteOrReconcile } from './promote.ts'
import { headOf } from './publish.ts'
import { checkOnly } from './releases/dry-run.ts'
import { publishedBefore } from './releases/published.ts'

export const releaseCommand: CommandSpec = command({
  name: 'release',
  summary: 'Build, publish, validate and promote in one step',
  details: [
    'Without --channel nothing is promoted. With --release a published Release is validated and no',
    'package is built. Every step may be repeated. With --dry-run the server makes the same checks',
    'and changes nothing; a package that would be rejected ends with 8.',
    ...PROVENANCE_DETAILS,
  ],
  options: {
    ...LINKED,
    ...PACKAGE_OPTIONS,
    ...PROVENANCE_OPTIONS,
    release: option('rel_ID', 'A published Release, instead of a package'),
    against: option('NAME', 'Compare with the Release of this Channel'),
    channel: option('NAME', 'The Channel to promote'),
    'dry-run': flag('Build and check only'),
  },
  examples: [
    'svc release --root . --channel production --message "Fix the inbox"',
    'svc release --against production --channel production --dry-run --json',
  ],
  async run(context, options) {
    const against = optionalChannel(options.against)
    const channel = optionalChannel(options.channel)
    const given = options.release
    if (given !== undefined && (options['dry-run'] || options.message !== undefined)) {
      throw usage('--release takes neither --dry-run nor --message.', releaseCommand)
    }
    const remote = await openRemote(context, options)
    if (options['dry-run']) {
      const provenance = await provenanceOf(context, remote, options)
      return checkOnly(context, remote, { ...options, against, channel, provenance })
    }
    const published =
      given === undefined
        ? await publishOnce(context, remote, options)
        : releaseIn(await remote.call(readStatus), parseReleaseId(given, releaseCommand))
    const { releaseId, status } = published
    if (status.lifecycle === 'archived') await context.output.note(ARCHIVED)
    const request = validate(remote, { releaseId, against })
    const validated = await context.output.progress('validating', request)
    await context.output.note(`validate  ${validated.state} (${validated.checks.length} checks)`)
    const bound =
      channel === undefined ? null : await bind(context, remote, releaseId, channel, status)
    const { lifecycle } = status
    await report(context, remote, { published, validated, bound, lifecycle })
  },
})

function optionalChannel(name: string | undefined): string | undefined {
  return name === undefined ? undefined : parseChannel(name, releaseCommand)
}

type Options = PackageOptions & { readonly message: string | undefined }

function provenanceOf(context: Context, remote: Remote, options: Options) {
  const { message } = options
  const directory = sourceDirectory(context, remote, options)
  return readProvenance(context, releaseCommand, { message, directory })
}

interface PublishedRelease {
  readonly releaseId: ReleaseId
  /** Null for an earlier Release, which no Workspace has at its head. */
  readonly revisionId: string | null
  readonly workspace: string | null
  readonly packageDigest: string | null
  readonly provenance: Provenance | null
  /** The status before this run. */
  readonly status: Status
}

/** The Release as the status shows it. */
function releaseIn(status: Status, releaseId: ReleaseId): PublishedRelease {
  const head = status.workspaces.find((each) => each.releaseId === releaseId)
  const release = status.releases.find((each) => each.releaseId === releaseId)
  return {
    releaseId,
    revisionId: head?.revisionId ?? null,
    workspace: head?.name ?? null,
    packageDigest: release?.packageDigest ?? null,
    provenance: release?.provenance ?? null,
    status,
  }
}

/** Publishes the package, unless it is the head of its Workspace already. */
async function publishOnce(
  context: Context,
  remote: Remote,
  options: Options,
): Promise<PublishedRelease> {
  const { output } = context
  const provenance = await provenanceOf(context, remote, options)
  const { frame, manifest, packageDigest } = await loadPackage(context, remote, options)
  await output.note(`build     ${manifest.workspace}, ${frame.length} bytes, ${packageDigest}`)
  const status = await output.progress('reading the status', remote.call(readStatus))
  const head = headOf(status, manifest.workspace)
  const current = publishedBefore(status, head.releaseId, packageDigest)
  if (current !== null) {
    await output.note(`publish   ${current} (published before)`)
    return releaseIn(status, current)
  }
  const request = publish(remote, { frame, expectedHead: head.expectedHead, provenance })
  const { releaseId, revisionId } = await output.progress('publishing', request)
  await output.note(`publish   ${releaseId} (${revisionId}, expected head ${head.expectedHead})`)
  const { workspace } = manifest
  return { releaseId, revisionId, workspace, packageDigest, provenance, status }
}

/** Binds the Channel, which must still be bound as the status showed, to the Release. */
async function bind(
  context: Context,
  remote: Remote,
  releaseId: ReleaseId,
  channel: string,
  status: Status,
): Promise<Bound> {
  const current = status.channels.find((item) => item.channel === channel)?.releaseId
  const expectedReleaseId: Expected<ReleaseId> = current ?? EMPTY
  const promotion = { channel, releaseId, expectedReleaseId }
  const before = boundIn(status, promotion)
  const bound = before ?? (await promoteOrReconcile(context, remote, promotion))
  const remark = bound.changed ? `expected ${expectedReleaseId}` : 'bound before'
  await context.output.note(`promote   ${channel} revision ${bound.revision} (${remark})`)
  return bound
}

interface Outcome {
  readonly published: PublishedRelease
  readonly validated: Validated
  readonly bound: Bound | null
  readonly lifecycle: Status['lifecycle']
}

/** Prints what the next step of a pipeline needs: identifiers, the target and addresses. */
async function report(
  context: Context,
  { session, descriptor }: Remote,
  { published, validated, bound, lifecycle }: Outcome,
): Promise<void> {
  const { status: _, releaseId, ...origin } = published
  const { state, checks } = validated
  const channel = bound === null ? null : { ...bound }
  const target = bound === null ? `release:${releaseId}` : `channel:${bound.channel}`
  const serves = lifecycle === 'archived' ? 'is bound to' : 'serves'
  const tail = bound === null ? `is ${state}; no Channel was given.` : `${serves} ${bound.channel}.`
  const { managementOrigin } = session.profile
  const { projectId, environmentId } = descriptor
  const environment = `${managementOrigin}/v1/projects/${projectId}/environments/${environmentId}`
  const urls = {
    management: managementOrigin,
    status: `${environment}/status`,
    functions: `${environment}/functions?target=${encodeURIComponent(target)}`,
    run: origin.provenance?.run?.url ?? null,
  }
  const outcome = { releaseId, state, checks, channel, lifecycle }
  await context.output.result({ version: 1, ...outcome, ...origin, target, urls }, [
    `${releaseId} ${tail}`,
  ])
}
