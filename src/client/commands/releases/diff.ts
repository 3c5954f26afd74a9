/** `svc diff`: what a release of the package would change in the linked Environment. */
import type { ReleaseId } from '../../../value/ids.ts'
import { listFunctions, listTables } from '../../../wire/operations/catalogs.ts'
import { listCrons } from '../../../wire/operations/crons.ts'
import { readStatus } from '../../../wire/operations/status.ts'
import type { Status } from '../../../wire/status.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { changeLines, changesOf, type Deployed, isUnchanged } from '../../development/changes.ts'
import { loadPackage, PACKAGE_OPTIONS } from '../../packages.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { REMOTE } from '../operations.ts'
import { parseChannel } from '../promote.ts'
import { headOf } from '../publish.ts'

export const diffCommand: CommandSpec = command({
  name: 'diff',
  summary: 'Show what a release would change: Functions, tables, indexes and Crons',
  details: [
    'Compares the package with the Release of --channel, or with the head of its Workspace, and',
    'changes nothing. Needs releases:read and cron:read. `svc release --dry-run` says whether the',
    'server would accept the package.',
  ],
  options: {
    ...REMOTE,
    ...PACKAGE_OPTIONS,
    channel: option('NAME', 'Compare with the Release of this Channel'),
  },
  examples: ['svc diff --root . --channel production'],
  async run(context, options) {
    const { output } = context
    const channel =
      options.channel === undefined ? null : parseChannel(options.channel, diffCommand)
    const remote = await openRemote(context, options)
    const { manifest, packageDigest } = await loadPackage(context, remote, options)
    const { workspace } = manifest
    const status = await output.progress('reading the status', remote.call(readStatus))
    const releaseId =
      channel === null ? headOf(status, workspace).releaseId : boundTo(status, channel)
    const reading = releaseId === null ? null : readDeployed(remote, releaseId)
    const deployed = await output.progress('reading the catalogs', Promise.resolve(reading))
    const changes = changesOf(manifest, deployed)
    const identical = isPackageOf(status, releaseId, packageDigest)
    const compared = { workspace, packageDigest, channel, releaseId, identical }
    await output.result({ version: 1, ...compared, ...changes }, [
      `${workspace} compared with ${releaseId ?? 'nothing: there is no Release yet'}.`,
      ...changeLines(changes),
      ...(isUnchanged(changes) ? [unchanged(identical)] : []),
    ])
  },
})

function boundTo({ channels }: Status, name: string): ReleaseId | null {
  return channels.find((item) => item.channel === name)?.releaseId ?? null
}

function isPackageOf({ releases }: Status, releaseId: ReleaseId | null, digest: string): boolean {
  const release = releases.find((item) => item.releaseId === releaseId)
  return release?.packageDigest === digest
}

async function readDeployed(remote: Remote, releaseId: ReleaseId): Promise<Deployed> {
  const target = `release:${releaseId}`
  const asked = { query: { target }, subjects: { target } }
  const { functions } = await remote.call(listFunctions, asked)
  const { tables } = await remote.call(listTables, asked)
  const { crons } = await remote.call(listCrons, asked)
  return { functions, tables, crons }
}

function unchanged(identical: boolean): string {
  return identical
    ? 'It is the same package.'
    : 'Functions, tables, indexes and Crons are the same; the code differs.'
}
