/** `svc release --dry-run`: what the same line without it would do, with nothing changed. */
import { Fault } from '../../../errors/fault.ts'
import type { ReleaseId } from '../../../value/ids.ts'
import { readStatus } from '../../../wire/operations/status.ts'
import { checkWorkspace } from '../../../wire/operations/workspace.ts'
import type { Status } from '../../../wire/status.ts'
import type { Provenance } from '../../../wire/workspace.ts'
import type { Context } from '../../contexts.ts'
import { loadPackage, type PackageOptions } from '../../packages.ts'
import type { Remote } from '../../roots/remotes.ts'
import { ARCHIVED } from '../operations.ts'
import { headOf } from '../publish.ts'
import { publishedBefore } from './published.ts'
import { changesText } from './schema-changes.ts'

interface Asked extends PackageOptions {
  readonly against: string | undefined
  readonly channel: string | undefined
  readonly provenance: Provenance | null
}

/** Throws PRODUCT_INCOMPATIBLE with a violation for each failed check, as a validation has it. */
export async function checkOnly(context: Context, remote: Remote, asked: Asked): Promise<void> {
  const { output } = context
  const { frame, manifest, packageDigest } = await loadPackage(context, remote, asked)
  const { workspace } = manifest
  await output.note(`build     ${workspace}, ${frame.length} bytes, ${packageDigest}`)
  const status = await output.progress('reading the status', remote.call(readStatus))
  if (status.lifecycle === 'archived') await output.note(ARCHIVED)
  const request = remote.call(checkWorkspace, { query: { against: asked.against }, body: frame })
  const checked = await output.progress('checking the package', request)
  const { compatible, checks, served = [] } = checked
  const changes = changesText(checked, output)
  if (!compatible) {
    for (const line of changes) await output.note(line)
    throw incompatible(checks)
  }
  await output.note(`check     passed (${checks.length} checks)`)
  const { expectedHead, releaseId: head } = headOf(status, workspace)
  const publishedReleaseId = publishedBefore(status, head, packageDigest)
  const channel = channelOf(status, asked.channel)
  const { provenance } = asked
  const would = { workspace, packageDigest, expectedHead, publishedReleaseId, channel, provenance }
  await output.result({ version: 1, dryRun: true, compatible, checks, served, ...would }, [
    ...changes,
    publishedReleaseId === null
      ? `Would publish ${workspace} as a new Release (expected head ${expectedHead}).`
      : `${publishedReleaseId} is this package already.`,
    ...promotionText(channel, publishedReleaseId),
    'Nothing was changed.',
  ])
}

function incompatible(checks: readonly { name: string; outcome: string; detail: string }[]): Fault {
  const failed = checks.filter(({ outcome }) => outcome === 'failed')
  const violations = failed.map(({ name, detail }) => ({ path: `checks.${name}`, rule: detail }))
  return new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

type ChannelNow = {
  readonly channel: string
  /** Null where it is not bound. */
  readonly releaseId: ReleaseId | null
}

function channelOf({ channels }: Status, name: string | undefined): ChannelNow | null {
  if (name === undefined) return null
  const found = channels.find((item) => item.channel === name)
  return { channel: name, releaseId: found?.releaseId ?? null }
}

function promotionText(now: ChannelNow | null, published: ReleaseId | null): string[] {
  if (now === null) return []
  const { channel, releaseId } = now
  if (releaseId === null) return [`Would bind ${channel} for the first time.`]
  if (releaseId === published) return [`${channel} is bound to it already.`]
  return [`Would move ${channel} from ${releaseId}.`]
}
