import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import { packageFrame, type TestClient } from '../../../../testing/client/test-client.ts'
import type {
  CronManifest,
  FunctionManifest,
  TableManifest,
  WorkspaceManifest,
} from '../../../value/manifest.ts'
import type { Json } from '../../../value/strict-json.ts'
import { changeLines, changesOf, isUnchanged } from '../../development/changes.ts'

const LIST: FunctionManifest = {
  name: 'messages.list',
  kind: 'query',
  visibility: 'public',
  clients: ['public'],
  auth: 'none',
  arguments: {},
  returns: { type: 'null' },
  errors: {},
}
const SEND: FunctionManifest = {
  ...LIST,
  name: 'messages.send',
  kind: 'action',
  uses: { network: ['example.com'], secrets: [] },
}
const MESSAGES: TableManifest = {
  name: 'messages',
  fields: { body: { type: 'string' }, likes: { type: 'int64' } },
  indexes: [{ name: 'byBody', fields: ['body'], unique: false }],
}
const NO_USES = { network: [], secrets: [], storage: 'none' }
const deployedOf = (
  functions: readonly FunctionManifest[],
  tables: readonly TableManifest[],
  crons: readonly CronManifest[] = [],
) =>
  ({
    functions: functions.map((item) => ({ ...item, uses: { ...NO_USES, ...item.uses } })),
    tables,
    crons: crons.map(({ everyMillis, ...cron }) => ({
      ...cron,
      every: everyMillis === null ? null : { milliseconds: everyMillis },
    })),
  }) as unknown as Parameters<typeof changesOf>[1]
const manifestOf = (
  functions: FunctionManifest[],
  tables: TableManifest[],
  crons: CronManifest[] = [],
) => ({ functions, tables, crons }) as unknown as WorkspaceManifest

describe('changes', () => {
  it('a package has no changes against its own Release', () => {
    const changes = changesOf(
      manifestOf([LIST, SEND], [MESSAGES]),
      deployedOf([LIST, SEND], [MESSAGES]),
    )
    expect([isUnchanged(changes), changeLines(changes)]).toEqual([true, []])
  })

  it('name what is added, removed and changed, and the parts that differ', () => {
    const next = manifestOf(
      [
        { ...LIST, arguments: { channel: { type: 'string' } }, clients: ['confidential'] },
        { ...LIST, name: 'rooms.list' },
        { ...SEND, uses: { network: [], secrets: ['KEY'] } },
      ],
      [
        {
          ...MESSAGES,
          fields: { body: { type: 'any' }, title: { type: 'string' } },
          indexes: [
            { name: 'byBody', fields: ['body'], unique: true },
            { name: 'byTitle', fields: ['title'], unique: false },
          ],
        },
        { name: 'rooms', fields: {}, indexes: [] },
      ],
    )
    const old = { ...LIST, name: 'old.list' }
    const oldTable = { name: 'old', fields: {}, indexes: MESSAGES.indexes }
    const changes = changesOf(next, deployedOf([LIST, SEND, old], [MESSAGES, oldTable]))
    expect(isUnchanged(changes)).toBe(false)
    expect(changeLines(changes)).toEqual([
      '+ function rooms.list',
      '~ function messages.list (arguments, clients)',
      '~ function messages.send (uses)',
      '- function old.list',
      '+ table rooms',
      '~ table messages (body, likes, title)',
      '- table old',
      '+ index messages.byTitle',
      '~ index messages.byBody (unique)',
      '- index old.byBody',
    ])
  })

  it('name Crons by what the server lists of them', () => {
    const sweep: CronManifest = {
      name: 'sweep',
      schedule: null,
      timeZone: null,
      everyMillis: 60_000,
      function: 'messages.sweep',
      arguments: {},
      overlap: 'skip',
    }
    const digest = { ...sweep, name: 'digest', schedule: '0 7 * * *', timeZone: 'UTC' }
    const next = manifestOf([], [], [{ ...sweep, everyMillis: 1_000, overlap: 'queue' }, digest])
    const other = { ...digest, name: 'other' }
    expect(changeLines(changesOf(next, deployedOf([], [], [sweep, other])))).toEqual([
      '+ cron digest',
      '~ cron sweep (every, overlap)',
      '- cron other',
    ])
    const same = changesOf(manifestOf([], [], [sweep]), deployedOf([], [], [sweep]))
    expect(isUnchanged(same)).toBe(true)
  })

  it('every part is a change if there is no Release yet', () => {
    const { functions, tables, indexes } = changesOf(manifestOf([LIST], [MESSAGES]), null)
    expect([functions.added, tables.added, indexes.added]).toEqual([
      ['messages.list'],
      ['messages'],
      ['messages.byBody'],
    ])
  })
})

describe('the command line', () => {
  let server: FakeServer
  let client: TestClient

  beforeEach(async () => {
    ;({ server, client } = await linkedClient())
    writeFileSync(join(client.home, 'app.svcpkg'), packageFrame(server.projectId))
  })

  const PACKAGE = ['--remote', '--root', 'root', '--package', 'app.svcpkg']
  const checks = (outcome: string): Json => [
    { name: 'code:functions', outcome: 'passed', detail: '' },
    { name: 'documents:messages', outcome, detail: '1 stored documents do not fit' },
  ]
  const packageDigest = `sha256:${'0'.repeat(64)}`

  const served = [
    {
      releaseId: 'rel_00000000000000000000000001',
      uses: ['bound to the Channel production'],
      changes: [
        {
          table: 'notes',
          path: 'nick',
          change: 'the field is added: optional string',
          promote: 'documents',
          rollback: 'allowed',
          refusals: [],
        },
        {
          table: 'tasks',
          path: 'byKey',
          change: 'the unique index is added',
          promote: 'allowed',
          rollback: 'documents',
          refusals: ['tasks.byKey: the unique index is added; for example {"a":1}'],
        },
      ],
      omitted: 3,
    },
    { releaseId: 'rel_00000000000000000000000002', uses: [], changes: [], omitted: 0 },
  ]

  /** The server answers a check with this outcome. */
  function checking(outcome: 'passed' | 'failed', answered: object = {}): void {
    server.intercept = ({ path }) => {
      if (!path.includes('/workspace/check')) return null
      const compatible = outcome === 'passed'
      const body = { workspace: 'default', packageDigest, compatible, checks: checks(outcome) }
      Object.assign(body, answered)
      return { status: 200, body: { version: 1, ...body } }
    }
  }

  it('compares with the head of the Workspace, and with a Channel', async () => {
    const tables = { version: 1, releaseId: 'rel_00000000000000000000000001', tables: [] }
    const crons = { version: 1, releaseId: 'rel_00000000000000000000000001', crons: [] }
    server.intercept = ({ path }) =>
      path.includes('/schema/tables')
        ? { status: 200, body: tables }
        : path.includes('/crons')
          ? { status: 200, body: { ...crons } }
          : null
    const first = await client.run('diff', ...PACKAGE)
    expect([first.exit, first.out]).toEqual([
      0,
      'default compared with nothing: there is no Release yet.\n' +
        'Functions, tables, indexes and Crons are the same; the code differs.\n',
    ])
    await client.run('release', ...PACKAGE, '--channel', 'production')
    const { releaseId } = server.head!
    const same = await client.run('diff', ...PACKAGE, '--channel', 'production')
    expect(same.out).toBe(`default compared with ${releaseId}.\nIt is the same package.\n`)
    server.functions = [{ ...LIST, name: 'old.list', uses: NO_USES }] as unknown as Json
    const ran = await client.run('diff', ...PACKAGE, '--json')
    expect(JSON.parse(ran.out)).toMatchObject({
      version: 1,
      workspace: 'default',
      channel: null,
      releaseId,
      identical: true,
      functions: { added: [], removed: ['old.list'], changed: [] },
    })
    const asked = server.requests.at(-3)!.path
    expect(asked).toBe(`${server.base}/functions?target=release%3A${releaseId}`)
    expect((await client.run('diff', ...PACKAGE, '--channel', '../x')).exit).toBe(2)
  })

  it('a dry run requests the checks alone, and says what a release would do', async () => {
    checking('passed')
    const line = ['release', ...PACKAGE, '--against', 'production', '--channel', 'staging']
    const ran = await client.run(...line, '--dry-run', '--message', 'Try', '--json')
    expect(ran.exit).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({
      version: 1,
      dryRun: true,
      compatible: true,
      checks: checks('passed'),
      workspace: 'default',
      expectedHead: 'empty',
      publishedReleaseId: null,
      channel: { channel: 'staging', releaseId: null },
      provenance: { message: 'Try' },
    })
    const writes = server.requests.filter(({ method }) => method !== 'GET')
    expect(writes.map(({ path }) => path)).toEqual([
      `${server.base}/workspace/check?against=production`,
    ])
    expect([server.head, server.channels.size]).toEqual([null, 0])
    const human = await client.run(...line, '--dry-run')
    expect(human.out).toBe(
      'Would publish default as a new Release (expected head empty).\n' +
        'Would bind staging for the first time.\nNothing was changed.\n',
    )
    await client.run('release', ...PACKAGE, '--channel', 'staging')
    const { releaseId } = server.head!
    const repeated = await client.run(...line, '--dry-run')
    expect(repeated.out).toBe(
      `${releaseId} is this package already.\nstaging is bound to it already.\n` +
        'Nothing was changed.\n',
    )
  })

  it('a dry run says for each change what it will allow', async () => {
    checking('passed', { served })
    const ran = await client.run('release', ...PACKAGE, '--dry-run')
    expect(ran.out.split('\n').slice(0, 5)).toEqual([
      'The schema against rel_00000000000000000000000001, bound to the Channel production:',
      `${'CHANGE'.padEnd(49)}${'PROMOTE'.padEnd(24)}SIDE BY SIDE  ROLLBACK`,
      'notes.nick: the field is added: optional string  yes, all documents fit  yes           yes',
      'tasks.byKey: the unique index is added           yes                     no            ' +
        'if all documents fit',
      'and 3 more changes',
    ])
    expect(ran.out).toContain('\nNot side by side: tasks.byKey: the unique index is added; for')
    expect(ran.out).not.toContain('rel_00000000000000000000000002')
    const json = await client.run('release', ...PACKAGE, '--dry-run', '--json')
    expect(JSON.parse(json.out)).toMatchObject({ served })
    checking('failed', { served })
    const failed = await client.run('release', ...PACKAGE, '--dry-run')
    expect([failed.exit, failed.out]).toEqual([8, ''])
    expect(failed.err).toContain('optional string  if all documents fit  yes')
  })

  it('a dry run ends with 8 and names the failed checks', async () => {
    checking('failed')
    const ran = await client.run('release', ...PACKAGE, '--dry-run')
    expect(ran.exit).toBe(8)
    expect(ran.err).toContain('  checks.documents:messages: 1 stored documents do not fit\n')
    expect(ran.err).not.toContain('code:functions')
  })

  it('takes no published Release with a dry run or a message', async () => {
    const given = ['--remote', '--root', 'root', '--release', 'rel_00000000000000000000000001']
    for (const more of [['--dry-run'], ['--message', 'x']]) {
      const ran = await client.run('release', ...given, ...more)
      expect([ran.exit, ran.err]).toEqual([
        2,
        expect.stringContaining('--release takes neither --dry-run nor --message.'),
      ])
    }
    expect(server.requests).toEqual([])
  })

  it('prints what a pipeline needs next', async () => {
    const earlier = 'rel_00000000000000000000000009'
    server.channels.set('production', { releaseId: earlier, revision: 4 })
    const ran = await client.run('release', ...PACKAGE, '--channel', 'production', '--json')
    const { releaseId, revisionId } = server.head!
    const environment = `${server.origin}${server.base}`
    expect(JSON.parse(ran.out)).toEqual({
      version: 1,
      releaseId,
      state: 'validated',
      lifecycle: 'active',
      checks: [{ name: 'code', outcome: 'passed', detail: '' }],
      channel: {
        channel: 'production',
        releaseId,
        revision: '5',
        changed: true,
        previousReleaseId: earlier,
      },
      revisionId,
      workspace: 'default',
      packageDigest: server.releases.get(releaseId)!.packageDigest,
      provenance: null,
      target: 'channel:production',
      urls: {
        management: server.origin,
        status: `${environment}/status`,
        functions: `${environment}/functions?target=channel%3Aproduction`,
        run: null,
      },
    })
  })

  it('fails as the server does where it cannot check', async () => {
    server.intercept = ({ path }) =>
      path.includes('/workspace/check') ? failure('PRODUCT_NOT_FOUND') : null
    const ran = await client.run('release', ...PACKAGE, '--dry-run', '--against', 'none')
    expect(ran.exit).toBe(7)
  })
})
