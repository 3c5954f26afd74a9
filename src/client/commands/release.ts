/**
 * `svc release`: build, publish, validate and, with a Channel, promote. Each step first looks at
 * whether it was done before, so that a broken run is simply run again.
 */

import type { ReleaseId } from '../../value/ids.ts'
import type { Provenance } from '../../wire/provenance.ts'
import type { Validated } from '../../wire/releases.ts'
import type { Status } from '../../wire/status.ts'
import { usage } from '../arguments.ts'
import { type CommandSpec, type Context, command, flag, option, requiredFlag } from '../contexts.ts'
import { loadPackage, PACKAGE_OPTIONS, type PackageOptions, sourceDirectory } from '../packages.ts'
import { PROVENANCE_DETAILS, PROVENANCE_OPTIONS, readProvenance } from '../provenance/provenance.ts'
import {
  EMPTY,
  type Expected,
  openRemote,
  publish,
  type Remote,
  readStatus,
  validate,
} from '../remotes.ts'
import { type Bound, boundIn, parseChannel, parseReleaseId, promoteSettled } from './promote.ts'
import { headOf } from './publish.ts'
import { checkOnly } from './releases/dry-run.ts'
import { publishedBefore } from './releases/published.ts'

export const releaseCommand: CommandSpec = command({
  name: 'release',
  summary: 'Build, publish, validate and promote in one step',
  details: [
    'Without --channel nothing is promoted. With --release an already published Release is',
    'validated instead of building one. Every step may be repeated. With --dry-run the server',
    'makes the same checks and changes nothing; a package that would be rejected ends with 8.',
    ...PROVENANCE_DETAILS,
  ],
  options: {
    remote: requiredFlag('Act on the linked Environment'),
    root: option('DIR', 'The linked root; by default the working directory'),
    ...PACKAGE_OPTIONS,
    ...PROVENANCE_OPTIONS,
    release: option('rel_ID', 'A published Release, instead of a package'),
    against: option('NAME', 'Compare with the Release of this Channel'),
    channel: option('NAME', 'The Channel to promote'),
    'dry-run': flag('Build and check only'),
  },
  examples: [
    'svc release --remote --root . --channel production --message "Fix the inbox"',
    'svc release --remote --against production --channel production --dry-run --json',
  ],
  async run(context, options) {
    const against = optionalChannel(options.against)
    const channel = optionalChannel(options.channel)
    const given = options.release
    if (given !== undefined && (options['dry-run'] || options.message !== undefined)) {
      throw usage('--release takes neither --dry-run nor --message.', releaseCommand)
    }
    const remote = await openRemote(context, options.root)
    if (options['dry-run']) {
      const provenance = await provenanceOf(context, remote, options)
      return checkOnly(context, remote, { ...options, against, channel, provenance })
    }
    const published =
      given === undefined
        ? await publishOnce(context, remote, options)
        : releaseIn(await readStatus(remote), parseReleaseId(given, releaseCommand))
    const { releaseId, status } = published
    const request = validate(remote, { releaseId, against })
    const validated = await context.output.progress('validating', request)
    await context.output.note(`validate  ${validated.state} (${validated.checks.length} checks)`)
    const bound =
      channel === undefined ? null : await bind(context, remote, releaseId, channel, status)
    await report(context, remote, { published, validated, bound })
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

/** A head that was made of the same package is the publication that this run would make. */
async function publishOnce(
  context: Context,
  remote: Remote,
  options: Options,
): Promise<PublishedRelease> {
  const { output } = context
  const provenance = await provenanceOf(context, remote, options)
  const { frame, manifest, packageDigest } = await loadPackage(context, remote, options)
  await output.note(`build     ${manifest.workspace}, ${frame.length} bytes, ${packageDigest}`)
  const status = await output.progress('reading the status', readStatus(remote))
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

/** Expects the Release that the status showed: whoever deployed meanwhile is not overwritten. */
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
  const bound = before ?? (await promoteSettled(context, remote, promotion))
  const remark = bound.changed ? `expected ${expectedReleaseId}` : 'bound before'
  await context.output.note(`promote   ${channel} revision ${bound.revision} (${remark})`)
  return bound
}

interface Outcome {
  readonly published: PublishedRelease
  readonly validated: Validated
  readonly bound: Bound | null
}

/** With what the next step of a pipeline asks for: identifiers, the target and addresses. */
async function report(
  context: Context,
  { session, base }: Remote,
  { published, validated, bound }: Outcome,
): Promise<void> {
  const { status: _, releaseId, ...origin } = published
  const { state, checks } = validated
  const channel = bound === null ? null : { ...bound }
  const target = bound === null ? `release:${releaseId}` : `channel:${bound.channel}`
  const tail = bound === null ? `${state}; no Channel was given.` : `serves ${bound.channel}.`
  const { managementOrigin } = session.profile
  const environment = `${managementOrigin}${base}`
  const urls = {
    management: managementOrigin,
    status: `${environment}/status`,
    functions: `${environment}/functions?target=${encodeURIComponent(target)}`,
    run: origin.provenance?.run?.url ?? null,
  }
  const document = { version: 1, releaseId, state, checks, channel, ...origin, target, urls }
  await context.output.result(document, [`${releaseId} ${bound === null ? 'is ' : ''}${tail}`])
}
