/**
 * Goal: the client of one release works with the server of its neighbour. Method: the programs of
 * the previous release run from the sources of its commit; each client releases a Workspace to the
 * server of the other version, calls it and reads every resource.
 *
 * @module-tag slow
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { VERSION } from '../../src/value/version.ts'
import {
  type Programs,
  previousCommit,
  previousPrograms,
} from '../../testing/servers/previous-release.ts'
import { application, mutation, operationId, send, string } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, SERVER } from '../harness.ts'

const TARGET = argv`--target channel:production`
/** Commands that read or change every resource, after a Workspace is released and called. */
const COMMANDS = [
  argv`auth status`,
  argv`whoami`,
  argv`sessions list`,
  argv`resources`,
  argv`operators list`,
  argv`audit`,
  argv`status`,
  argv`health`,
  argv`metrics`,
  argv`logs`,
  argv`logs archive-status`,
  argv`functions ${TARGET}`,
  argv`tables ${TARGET}`,
  argv`data query channels ${TARGET}`,
  argv`releases list`,
  argv`serve-policy get`,
  argv`environments get`,
  argv`config set GREETING hello`,
  argv`config list`,
  argv`config history`,
  argv`clients list`,
  argv`scheduled list`,
  argv`crons list`,
  argv`buckets create uploads`,
  argv`buckets list`,
  argv`buckets keys list uploads`,
  argv`files list --bucket uploads`,
  argv`data export channels ${TARGET}`,
]
/** Commands that act on this machine, or on every Environment. */
const WITHOUT_ROOT = ['auth', 'whoami', 'sessions', 'resources', 'operators', 'audit']

const commit = previousCommit()
const isThere = commit === '' ? ' (the history lacks the previous release)' : ''

async function story(executables: { readonly client: string; readonly server: string }) {
  const app = await application(undefined, {}, executables)
  onTestFinished(() => app.installation.dispose())
  const root = argv`--root ${app.installation.productRoot}`
  const made = await mutation(app, {
    function: 'channels.create',
    arguments: { author: string('ann'), name: string('general') },
    operationId: operationId(),
  })
  expect(made.body).toMatchObject({ status: 'ok' })
  const plain = await send(app.server.application!, 'POST', '/v1/functions/channels.list', {
    headers: { 'x-service-key': app.key, 'x-service-target': 'channel:production' },
    body: {},
  })
  const remarks = new Set<string>()
  const failures: string[] = []
  for (const command of COMMANDS) {
    const scope = WITHOUT_ROOT.includes(command[0]!) ? [] : root
    const { status, stdout, stderr } = await app.installation.svc(argv`${command} ${scope}`)
    if (status !== 0) failures.push(`${command.join(' ')}: ${status} ${stdout}${stderr}`)
    for (const line of stderr.split('\n')) if (line.startsWith('The server is')) remarks.add(line)
  }
  return { failures, remarks: [...remarks], plain }
}

describe.skipIf(commit === '')(`the previous release${isThere}`, () => {
  const previous = (): Programs => previousPrograms(commit)

  test('the client of the previous release works with this server', async () => {
    const { failures } = await story({ client: previous().client, server: SERVER })
    // The client of 0.4.4 rejects components that it does not know; later clients show them.
    const isKnown = (failure: string) =>
      previous().version === '0.4.4' && failure.startsWith('health: ')
    expect(failures.filter((failure) => !isKnown(failure))).toEqual([])
  })

  test('this client works with the previous server and reports that it is older', async () => {
    const { server, version } = previous()
    expect(version).not.toBe(VERSION)
    const { failures, remarks, plain } = await story({ client: CLIENT, server })
    expect(failures).toEqual([])
    // A client of plain calls notices that the server is older.
    expect([plain.status, plain.body.error.code]).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(remarks).toEqual([expect.stringMatching(/^The server is .*older than this svc /)])
    expect(remarks[0]).toContain(`this svc ${VERSION}`)
  })
})

test('a client prints no remark if the server has its version', async () => {
  const { failures, remarks, plain } = await story({ client: CLIENT, server: SERVER })
  expect({ failures, remarks }).toEqual({ failures: [], remarks: [] })
  expect(plain.body.result).toMatchObject([{ name: 'general' }])
})
