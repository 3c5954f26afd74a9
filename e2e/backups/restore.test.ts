/**
 * A server is made again from its backup: the same applications, operators, keys, files, secrets
 * and schedules, with documents in either store, and from a directory, a tar file and a bucket.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { S3Target } from '../../src/backups/targets/s3.ts'
import { sha256Hex } from '../../src/system/digests.ts'
import { S3Server } from '../../testing/servers/s3-server.ts'
import { type Application, application, id, mutation, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import { grantDownload, grantUpload, writeFileFunctions } from '../files/workspace.ts'
import { productEnvironment, run, SERVER } from '../harness.ts'
import { backUp, type MadeBackup, type NewServer, newServer, restore } from './backups.ts'

const BYTES = randomBytes(200_000)

let app: Application
let backup: MadeBackup
let fileId: string
let attached: { readonly operationId: string; readonly reply: unknown }
const servers: NewServer[] = []

const curl = (...args: string[]) => run(['/usr/bin/curl', '-sS', ...args])

const ATTACH = () => ({
  function: 'uploads.attach',
  arguments: { text: string('a film'), file: id(fileId) },
})

beforeAll(async () => {
  app = await application(writeFileFunctions)
  const root = argv`--remote --root ${app.installation.productRoot}`
  await app.svc(argv`config set GREETING --value-env VALUE ${root}`, { VALUE: 'hello' })
  await app.svc(argv`config set TOKEN --secret --value-env VALUE ${root}`, { VALUE: 'sealed' })
  const source = join(app.installation.directory, 'film.bin')
  writeFileSync(source, BYTES)
  const grant = await grantUpload(app, BYTES.length)
  const uploaded = await curl(
    ...argv`-T ${source} -H ${'Content-Type: application/octet-stream'}`,
    ...argv`-H ${`Authorization: Bearer ${grant.token}`} ${app.server.application + grant.path}`,
  )
  fileId = JSON.parse(uploaded.stdout).file.fileId
  const operationId = `opn_${'0'.repeat(25)}7`
  const reply = (await mutation(app, { ...ATTACH(), operationId })).body
  attached = { operationId, reply }
  await app.server.stop()
  await app.server.ended
  backup = await backUp(app)
})

afterAll(async () => {
  for (const server of servers) await server.dispose()
  await app?.installation.dispose()
})

async function made(name: string, documents: 'sqlite' | 'postgres' = 'sqlite'): Promise<NewServer> {
  const server = await newServer(app, { name, documents })
  servers.push(server)
  return server
}

/** Serves the restored root at the addresses of the first server, and compares its answers. */
async function expectSameAnswers(restored: NewServer): Promise<void> {
  const settings = { ...productEnvironment(app.installation), ...restored.environment }
  app.server = await app.installation.start(settings)
  try {
    const listed = await query(app, { function: 'uploads.list' })
    expect(listed.status).toBe(200)
    expect(JSON.stringify(listed.body.result)).toContain(sha256Hex(BYTES))
    const { operationId, reply } = attached
    const repeated = (await mutation(app, { ...ATTACH(), operationId })).body
    const { metadata, ...first } = reply as { metadata: object }
    expect(repeated).toMatchObject({ result: (first as { result?: unknown }).result })
    expect(repeated.metadata).toEqual({ ...metadata, replayed: true })
    const grant = await grantDownload(app, fileId)
    const copy = join(app.installation.directory, 'copy.bin')
    const url = app.server.application + grant.path
    await curl(...argv`-o ${copy} -H ${`Authorization: Bearer ${grant.token}`} ${url}`)
    expect(sha256Hex(readFileSync(copy))).toBe(sha256Hex(BYTES))
    // The session of the operator, whose digest the pepper keys.
    const root = argv`--remote --root ${app.installation.productRoot}`
    const config = await app.svc(argv`config list ${root}`)
    expect(JSON.stringify(config)).toContain('GREETING')
    expect((await app.svc(argv`status ${root}`)).releases ?? true).toBeTruthy()
    const after = await mutation(app, ATTACH())
    expect(after.status).toBe(200)
  } finally {
    await app.server.stop()
    await app.server.ended
  }
}

describe('svc-server restore', () => {
  test.each(['sqlite', 'postgres'] as const)(
    'a server with documents in %s answers as the one that was backed up',
    async (documents) => {
      const restored = await made(documents, documents)
      const args = ['--json']
      const result = await restore({ from: backup.directory, ...backup, to: restored, args })
      expect(result.status, result.stderr).toBe(0)
      const report = JSON.parse(result.stdout)
      expect(report).toMatchObject({ root: restored.root, revoked: false, pepper: 'unknown' })
      expect(report.sessions).toHaveLength(1)
      expect(report.credentials).toHaveLength(1)
      expect(report.documents).toBeGreaterThan(0)
      await expectSameAnswers(restored)
    },
  )

  test('the executable rehearses a restore, and ends with the pipe of its server', async () => {
    const [environmentId] = readdirSync(backup.directory)
    const [historyId] = readdirSync(join(backup.directory, environmentId!))
    const identities = readFileSync(backup.identity, 'utf8').match(/^AGE-SECRET-KEY-.*$/gm)
    const directory = join(app.installation.directory, 'rehearsal')
    const target = { kind: 'directory', path: backup.directory }
    const address = { environmentId, historyId }
    const request = { target, address, identities, directory, freeFloorBytes: 0 }
    const start = () =>
      Bun.spawn([SERVER, '__backup-rehearsal'], { env: {}, stdin: 'pipe', stdout: 'pipe' })
    const rehearsal = start()
    rehearsal.stdin.write(`${JSON.stringify(request)}\n`)
    await rehearsal.stdin.flush()
    const reply = JSON.parse(await new Response(rehearsal.stdout).text())
    expect(reply.rehearsed.documents).toBeGreaterThan(0)
    expect(await rehearsal.exited).toBe(0)
    rmSync(directory, { recursive: true })
    const left = start()
    left.stdin.write(`${JSON.stringify(request)}\n`)
    await left.stdin.end()
    expect(await left.exited).toBe(1)
  })

  test('a tar file of a backup is restored, and a cut one is rejected', async () => {
    const tar = join(app.installation.directory, 'backup.tar')
    const [environment] = readdirSync(backup.directory)
    const packed = await run(argv`/bin/tar -cf ${tar} -C ${backup.directory} ${environment!}`)
    expect(packed.status, packed.stderr).toBe(0)
    const restored = await made('tar')
    const pepper = app.installation.environment.SERVICE_PLATFORM_IDENTITY_PEPPER_FILE!
    const result = await restore({
      from: tar,
      identity: backup.identity,
      to: restored,
      environment: { SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: pepper },
    })
    expect(result.status, result.stderr).toBe(0)
    expect(result.stdout).toMatch(/^Restored sequence \d+ of /)
    expect(result.stdout).toContain('is the pepper of the server that made the backup')
    await expectSameAnswers(restored)
    writeFileSync(tar, readFileSync(tar).subarray(0, -20_000))
    const cut = await restore({ from: tar, ...backup, to: await made('cut') })
    expect(cut.status).toBe(6)
    expect(cut.stderr).toContain('the tar file: it ends within an entry')
  })

  test('a backup in a bucket is restored with the keys of the settings', async () => {
    const s3 = new S3Server()
    try {
      const address = {
        endpoint: s3.endpoint,
        bucket: 'backups',
        region: 'us-east-1',
        accessKeyId: 'a',
        secretAccessKey: 's',
      }
      const made3 = await backUp(app, new S3Target({ address, prefix: 'svc/' }))
      const restored = await made('s3')
      const result = await restore({
        from: 's3://backups/svc',
        identity: made3.identity,
        to: restored,
        environment: {
          SERVICE_BACKUP_S3_ENDPOINT: s3.endpoint,
          SERVICE_BACKUP_S3_ACCESS_KEY_ID: 'a',
          SERVICE_BACKUP_S3_SECRET_ACCESS_KEY: 's',
        },
      })
      expect(result.status, result.stderr).toBe(0)
      await expectSameAnswers(restored)
    } finally {
      await s3.stop()
    }
  })

  test('an altered segment is named, with exit 6 and nothing restored', async () => {
    backup = await backUp(app)
    const segment = segments().at(-1)!
    const bytes = readFileSync(segment)
    writeFileSync(segment, Buffer.concat([bytes.subarray(0, -1), Buffer.of(bytes.at(-1)! ^ 1)]))
    const restored = await made('altered')
    const result = await restore({ from: backup.directory, ...backup, to: restored })
    expect(result.status).toBe(6)
    expect(result.stderr).toContain('BACKUP_CORRUPT')
    expect(result.stderr).toContain(segment.slice(backup.directory.length + 1))
    expect(existsSync(restored.root)).toBe(false)
    writeFileSync(segment, bytes)
    const repeated = await restore({ from: backup.directory, ...backup, to: restored })
    expect(repeated.status, repeated.stderr).toBe(0)
    const again = await restore({ from: backup.directory, ...backup, to: restored })
    expect(again.status).toBe(4)
    expect(again.stderr).toContain('RESTORE_NOT_EMPTY')
  })

  test('svc backup verify reads the backup, and restores it into a temporary place', async () => {
    const command = argv`backup verify ${backup.directory} --identity ${backup.identity}`
    const read = await app.svc(command)
    expect(read).toMatchObject({ version: 1, restored: null, files: 3, missingFiles: 0 })
    const rehearsed = await app.svc(argv`${command} --restore`)
    expect(rehearsed).toMatchObject({ sequence: read.sequence, files: 3 })
    const restored = await made('rehearsal')
    const { url } = restored.identityDatabase
    const whole = argv`${command} --restore --database ${url}`
    expect((await app.svc(whole)).restored).toEqual(rehearsed.restored)
    const { stdout } = await restore({
      from: backup.directory,
      ...backup,
      to: restored,
      args: ['--json'],
    })
    const { documents, merkle } = JSON.parse(stdout)
    expect(rehearsed.restored).toEqual({ documents, merkle })
    const segment = segments().at(-1)!
    const bytes = readFileSync(segment)
    writeFileSync(segment, bytes.subarray(1))
    const rejected = await app.installation.svc(command)
    writeFileSync(segment, bytes)
    expect(rejected.status).toBe(6)
    expect(rejected.stderr).toContain(segment.slice(backup.directory.length + 1))
  })

  test('revoked sessions and keys of a restore are rejected by the new server', async () => {
    const restored = await made('revoked')
    const args = ['--revoke-resurrected']
    const result = await restore({ from: backup.directory, ...backup, to: restored, args })
    expect(result.status, result.stderr).toBe(0)
    expect(result.stdout).toContain('are revoked now')
    const settings = { ...productEnvironment(app.installation), ...restored.environment }
    app.server = await app.installation.start(settings)
    expect((await query(app, { function: 'uploads.list' })).status).toBe(401)
    const root = argv`--remote --root ${app.installation.productRoot}`
    expect((await app.installation.svc(argv`status ${root}`)).status).toBe(3)
    await app.server.stop()
    await app.server.ended
  })

  /** The files of the segments, in their order. */
  function segments(): string[] {
    const files = readdirSync(backup.directory, { recursive: true, encoding: 'utf8' })
    const names = files.filter((name) => /\/\d{12}\.age$/.test(name)).sort()
    return names.map((name) => join(backup.directory, name))
  }

  test('wrong arguments print the usage, and a missing identity is named', async () => {
    const restored = await made('arguments')
    const command = { from: backup.directory, ...backup, to: restored }
    for (const args of [['--to-sequence', 'x'], ['--to-time', 'yesterday'], ['--unknown']]) {
      expect((await restore({ ...command, args })).status, args.join(' ')).toBe(2)
    }
    rmSync(backup.identity)
    const missing = await restore(command)
    expect(missing.status).toBe(78)
    expect(missing.stderr).toContain('--identity')
  })
})
