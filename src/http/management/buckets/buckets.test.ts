/** Buckets and storage keys as operators manage them, over a real Product. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Console, type ConsoleCall, openConsole } from '../../../../testing/files/consoles.ts'
import { issueUpload } from '../../../product/files/uploads.ts'

let t: Console
beforeAll(async () => {
  t = await openConsole()
})
afterAll(() => t.close())

interface Bucket {
  bucketId: string
  lifecycle: string
  revision: string
  configuration: { name: string; quotaBytes: string | null; maximumObjectBytes: string | null }
  usage: { files: string; bytes: string }
  operation: { operationId: string; kind: string; replayed: boolean }
}

let names = 0
const configurationOf = (more: object = {}) => {
  return { name: `bucket-${++names}`, quotaBytes: null, maximumObjectBytes: null, ...more }
}
const create = (more: object = {}, call: Partial<ConsoleCall> = {}) =>
  t.call('POST', '/buckets', {
    body: { configuration: configurationOf(more), changedAtMicros: t.now() },
    ...call,
  })
const created = (more: object = {}) => t.json<Bucket>(201, create(more))
const change = (path: string, body: object, operationId = t.operation()) =>
  t.call('POST', path, { body: { ...body, changedAtMicros: t.now() }, operationId })
const failure = async (pending: Promise<Response>) => {
  const reply = await pending
  const { error } = (await reply.json()) as {
    error: { code: string; violations?: { path: string }[] }
  }
  const paths = (error.violations ?? []).map(({ path }) => path)
  return [reply.status, error.code, ...paths].join(' ')
}

describe('buckets', () => {
  test('default exists, has the ID of the Environment, and can be bounded', async () => {
    const { items } = await t.json<{ items: Bucket[] }>(200, t.call('GET', '/buckets'))
    const { configuration, bucketId, revision } = items[0]!
    expect(configuration).toEqual({ name: 'default', quotaBytes: null, maximumObjectBytes: null })
    expect(bucketId.slice(4)).toBe(t.gateway.harness.root.descriptor.environmentId.slice(4))
    const body = {
      configuration: { ...configuration, quotaBytes: '1000000' },
      expectedRevision: revision,
      changedAtMicros: t.now(),
    }
    const bounded = await t.json<Bucket>(200, t.call('PUT', `/buckets/${bucketId}`, { body }))
    expect(bounded).toMatchObject({ revision: '2', configuration: { quotaBytes: '1000000' } })
    const archive = change(`/buckets/${bucketId}/archive`, { expectedRevision: '2' })
    expect(await failure(archive)).toBe('409 PRODUCT_STATE_CONFLICT bucketId')
  })

  test('a repeated creation gets the first bucket; another use of its ID fails', async () => {
    const operationId = t.operation()
    const body = { configuration: configurationOf(), changedAtMicros: t.now() }
    const first = await t.json<Bucket>(201, t.call('POST', '/buckets', { body, operationId }))
    const again = await t.json<Bucket>(200, t.call('POST', '/buckets', { body, operationId }))
    expect(again).toEqual({ ...first, operation: { ...first.operation, replayed: true } })
    const other = { ...body, configuration: configurationOf() }
    const reused = t.call('POST', '/buckets', { body: other, operationId })
    expect(await failure(reused)).toBe('409 PRODUCT_OPERATION_REUSED')
    const looked = t.call('GET', `/bucket-operations/${operationId}`)
    expect(await t.json(200, looked)).toMatchObject({ kind: 'bucket.create', replayed: true })
    const unknown = t.call('GET', `/bucket-operations/${t.operation()}`)
    expect(await failure(unknown)).toBe('404 PRODUCT_NOT_FOUND operationId')
  })

  test.each([
    ['ab', 'configuration.name'],
    ['-ab', 'configuration.name'],
    ['ab-', 'configuration.name'],
    ['Abc', 'configuration.name'],
    ['a.b', 'configuration.name'],
    ['a/b', 'configuration.name'],
    ['../x', 'configuration.name'],
    ['a\u0000b', 'configuration.name'],
    ['ünï', 'configuration.name'],
  ])('the name %j is no name of a bucket', async (name, path) => {
    expect(await failure(create({ name }))).toBe(`400 PRODUCT_INVALID ${path}`)
  })

  test('bounds beyond what JSON readers keep are invalid', async () => {
    for (const field of ['quotaBytes', 'maximumObjectBytes']) {
      const answer = await failure(create({ [field]: '9007199254740992' }))
      expect(answer).toBe(`400 PRODUCT_INVALID configuration.${field}`)
    }
  })

  test('a name is used once, also after its bucket was archived', async () => {
    const { bucketId, configuration } = await created()
    const { name } = configuration
    const taken = '409 PRODUCT_STATE_CONFLICT configuration.name'
    expect(await failure(create({ name }))).toBe(taken)
    await t.json(200, change(`/buckets/${bucketId}/archive`, { expectedRevision: '1' }))
    expect(await failure(create({ name }))).toBe(taken)
  })

  test('a change names the revision that it follows, and keeps the name', async () => {
    const { bucketId, configuration } = await created()
    const replace = (expectedRevision: string, more: object) =>
      t.call('PUT', `/buckets/${bucketId}`, {
        body: {
          configuration: { ...configuration, ...more },
          expectedRevision,
          changedAtMicros: t.now(),
        },
      })
    await t.json(200, replace('1', { quotaBytes: '5' }))
    expect(await failure(replace('1', {}))).toBe('409 PRODUCT_CAS_CONFLICT')
    const renamed = replace('2', { name: 'another' })
    expect(await failure(renamed)).toBe('409 PRODUCT_STATE_CONFLICT configuration.name')
    const archive = (revision: string) =>
      change(`/buckets/${bucketId}/archive`, { expectedRevision: revision })
    expect(await failure(archive('1'))).toBe('409 PRODUCT_CAS_CONFLICT')
    expect(await t.json(200, archive('2'))).toMatchObject({ lifecycle: 'archived', revision: '3' })
    for (const again of [archive('3'), replace('3', {})]) {
      expect(await failure(again)).toBe('409 PRODUCT_STATE_CONFLICT bucketId')
    }
  })

  test('pages list every bucket once', async () => {
    for (let i = 0; i < 3; i++) await created()
    const listed: string[] = []
    let after: string | null = null
    do {
      const query: string = after === null ? '' : `&after=${after}`
      const page: { items: Bucket[]; next: string | null } = await t.json(
        200,
        t.call('GET', `/buckets?limit=2${query}`),
      )
      listed.push(...page.items.map(({ bucketId }) => bucketId))
      after = page.next
    } while (after !== null)
    expect(new Set(listed).size).toBe(listed.length)
    expect(listed.length).toBeGreaterThan(3)
  })

  test('an unknown bucket is not found', async () => {
    const bucketId = t.gateway.harness.system.ids.make('bkt')
    for (const path of ['', '/keys', '/objects', '/objects/x']) {
      const answer = await failure(t.call('GET', `/buckets/${bucketId}${path}`))
      expect(answer, path).toBe('404 PRODUCT_NOT_FOUND bucketId')
    }
  })

  test('changes are in the audit, each once', async () => {
    const { bucketId } = await created()
    await t.json(200, change(`/buckets/${bucketId}/archive`, { expectedRevision: '1' }))
    await t.gateway.harness.product.audit.whenIdle()
    const records = t.gateway.harness.audited.filter(({ subject }) => subject === bucketId)
    const operations = records.map(({ operation }) => operation)
    expect(operations).toEqual(['product.bucket.create', 'product.bucket.archive'])
  })

  test('an archived bucket makes no grants, and its files can be read', async () => {
    const { bucketId, configuration } = await created()
    const { name } = configuration
    await t.call('PUT', `/buckets/${bucketId}/objects/kept`, { body: new Uint8Array(3) })
    await t.json(200, change(`/buckets/${bucketId}/archive`, { expectedRevision: '1' }))
    const grant = issueUpload(t.gateway.files, {
      bucket: name,
      key: null,
      contentType: 'a/b',
      maximumBytes: 1,
      expiresInSeconds: 60,
      releaseId: t.gateway.releaseId,
    })
    await expect(grant).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    expect((await t.call('GET', `/buckets/${bucketId}/objects/kept`)).status).toBe(200)
    const put = t.call('PUT', `/buckets/${bucketId}/objects/more`, { body: new Uint8Array(3) })
    expect(await failure(put)).toBe('409 PRODUCT_STATE_CONFLICT archived')
    await t.json(200, t.call('DELETE', `/buckets/${bucketId}/objects/kept`))
  })
})

describe('storage keys', () => {
  interface Issued {
    storageKeyId: string
    accessKeyId: string
    secretAccessKey: string | null
    secretShownOnce: boolean
    replayed: boolean
  }
  const find = (accessKeyId: string) => t.gateway.files.storageKeys.find(accessKeyId)

  test('a key opens its bucket, and its secret is shown once and stored nowhere', async () => {
    const { bucketId, configuration } = await created()
    const body = { name: 'ci', access: 'read', changedAtMicros: t.now() }
    const operationId = t.operation()
    const issue = () => t.call('POST', `/buckets/${bucketId}/keys`, { body, operationId })
    const reply = await issue()
    expect(reply.headers.get('cache-control')).toBe('no-store, max-age=0')
    const issued = (await reply.json()) as Issued
    const { storageKeyId, secretAccessKey } = issued
    expect(issued).toMatchObject({ accessKeyId: storageKeyId, secretShownOnce: true })
    expect(secretAccessKey).toMatch(/^rk_stk_v1_[A-Za-z0-9_-]{43}$/)
    const caller = find(storageKeyId)!
    expect(caller).toMatchObject({ bucketId, bucketName: configuration.name, access: 'read' })
    expect(caller.secretAccessKey.reveal()).toBe(secretAccessKey)
    const repeat = await t.json<Issued>(200, issue())
    expect(repeat).toMatchObject({ storageKeyId, secretAccessKey: null, secretShownOnce: false })
    const { control } = t.gateway.harness.root
    const rows = control.read((reader) => [
      ...reader.all('select * from storage_keys'),
      ...reader.all('select * from operations'),
    ])
    expect(JSON.stringify(rows)).not.toContain(secretAccessKey!.slice(10))
    expect(t.log.text()).not.toContain(secretAccessKey!.slice(10))
  })

  test('rotation makes a second key and keeps the first, until it is revoked', async () => {
    const { bucketId } = await created()
    const keys = `/buckets/${bucketId}/keys`
    const first = await t.json<Issued>(201, change(keys, { name: 'ci', access: 'write' }))
    const second = await t.json<Issued>(201, change(`${keys}/${first.storageKeyId}/rotate`, {}))
    expect(second.secretAccessKey).not.toBe(first.secretAccessKey)
    expect([first, second].map(({ accessKeyId }) => find(accessKeyId)?.access)).toEqual([
      'write',
      'write',
    ])
    const operationId = t.operation()
    await t.json(200, change(`${keys}/${first.storageKeyId}/revoke`, {}, operationId))
    expect([first, second].map(({ accessKeyId }) => find(accessKeyId)?.access)).toEqual([
      undefined,
      'write',
    ])
    const { items } = await t.json<{ items: object[] }>(200, t.call('GET', keys))
    expect(items).toMatchObject([
      { storageKeyId: first.storageKeyId, state: 'revoked', replaces: null },
      { storageKeyId: second.storageKeyId, state: 'active', replaces: first.storageKeyId },
    ])
    const rotated = change(`${keys}/${first.storageKeyId}/rotate`, {})
    expect(await failure(rotated)).toBe('409 PRODUCT_STATE_CONFLICT storageKeyId')
    const looked = t.call('GET', `/bucket-operations/${operationId}`)
    expect(await t.json(200, looked)).toMatchObject({ kind: 'storage_key.revoke' })
  })

  test('a key is one of its bucket alone', async () => {
    const [mine, other] = [await created(), await created()]
    const issued = change(`/buckets/${mine.bucketId}/keys`, { name: 'ci', access: 'read' })
    const { storageKeyId } = await t.json<Issued>(201, issued)
    for (const verb of ['rotate', 'revoke']) {
      const answer = change(`/buckets/${other.bucketId}/keys/${storageKeyId}/${verb}`, {})
      expect(await failure(answer)).toBe('404 PRODUCT_NOT_FOUND storageKeyId')
    }
  })

  test('the keys of an archived bucket open nothing, and no key is issued', async () => {
    const { bucketId } = await created()
    const keys = `/buckets/${bucketId}/keys`
    const issued = await t.json<Issued>(201, change(keys, { name: 'ci', access: 'read' }))
    await t.json(200, change(`/buckets/${bucketId}/archive`, { expectedRevision: '1' }))
    expect(find(issued.accessKeyId)).toBeNull()
    for (const path of [keys, `${keys}/${issued.storageKeyId}/rotate`]) {
      const body = path === keys ? { name: 'ci', access: 'read' } : {}
      expect(await failure(change(path, body))).toBe('409 PRODUCT_STATE_CONFLICT bucketId')
    }
  })

  test.each(['stk_', 'x', '', 'stk_00000000000000000000000000', "' or 1=1 --"])(
    'the access key ID %j is unknown',
    (text) => {
      expect(find(text)).toBeNull()
    },
  )
})
