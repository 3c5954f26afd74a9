import { expect, test } from 'vitest'
import type { OperationId } from '../../value/ids.ts'
import { PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { ClientCreated } from '../../wire/application-clients.ts'
import { createApplicationClient } from '../../wire/operations/application-clients.ts'
import { deleteObject, putObject, readObject } from '../../wire/operations/buckets/objects.ts'
import { listFunctions } from '../../wire/operations/catalogs.ts'
import { deleteConfiguration } from '../../wire/operations/configuration.ts'
import { readSelf } from '../../wire/operations/identity/auth.ts'
import { listSessions, revokeSession } from '../../wire/operations/identity/sessions.ts'
import { followLogs } from '../../wire/operations/logs.ts'
import { publishWorkspace } from '../../wire/operations/workspace.ts'
import { EXPECTED_HEAD_HEADER } from '../../wire/workspace.ts'
import { requestOf } from './operation-requests.ts'

const SCOPE = { projectId: 'prj_1', environmentId: 'env_1' }
const BASE = '/v1/projects/prj_1/environments/env_1'
const OPERATION_ID = 'opn_00000000000000000000000001' as OperationId

test('a parameter is escaped whole, so that it stays one segment of the path', () => {
  const params = { ...SCOPE, bucketId: 'bkt_1', objectKey: 'a/../b?c#d%' }
  const { method, path } = requestOf(deleteObject, { params, operationId: OPERATION_ID })
  expect([method, path]).toEqual(['DELETE', `${BASE}/buckets/bkt_1/objects/a%2F..%2Fb%3Fc%23d%25`])
})

test('a query has the fields that are given, escaped', () => {
  const path = (query: { readonly limit?: number; readonly after?: string | undefined }) =>
    requestOf(listSessions, { query }).path
  expect(path({})).toBe('/v1/auth/sessions')
  expect(path({ limit: 7, after: undefined })).toBe('/v1/auth/sessions?limit=7')
  expect(path({ after: 'a&b=c' })).toBe('/v1/auth/sessions?after=a%26b%3Dc')
})

test('an operation without arguments needs none', () => {
  expect(requestOf(readSelf)).toMatchObject({ method: 'GET', path: '/v1/auth/me', replay: 'safe' })
})

test('the Operation ID and the headers that have a value are sent', () => {
  const asked = { params: { ...SCOPE, name: 'N' }, operationId: OPERATION_ID }
  const body = { expectedRevision: '1', changedAtMicros: '2' }
  expect(requestOf(deleteConfiguration, { ...asked, body }).headers).toEqual({
    accept: 'application/json',
    'idempotency-key': OPERATION_ID,
  })
  const headers = { [EXPECTED_HEAD_HEADER]: 'empty', 'x-service-provenance': undefined }
  const frame = new Uint8Array([1])
  expect(requestOf(publishWorkspace, { params: SCOPE, headers, body: frame })).toMatchObject({
    headers: { accept: 'application/json', [EXPECTED_HEAD_HEADER]: 'empty' },
    body: frame,
    contentType: PACKAGE_MEDIA_TYPE,
    deadlineMs: 300_000,
  })
})

test('the form of the response, its bound and the replay are those of the operation', () => {
  const body = {
    ...({ clientId: 'app_1', name: 'web', kind: 'public' } as const),
    maximumScopes: ['query'] as const,
    createdAtMicros: '1',
  }
  // @ts-expect-error: the ID is not checked.
  const created = requestOf(createApplicationClient, { params: SCOPE, body })
  expect([created.reply, created.replay]).toEqual([ClientCreated, 'safe'])
  const catalog = requestOf(listFunctions, { params: SCOPE, query: { target: 'a:b' } })
  expect(catalog).toMatchObject({ responseBytesMax: 16 * 1024 * 1024 })
  expect(requestOf(revokeSession, { params: { sessionId: 'ops_1' } }).reply).toBeNull()
})

test('bytes are read with the media types of the operation', () => {
  const params = { ...SCOPE, bucketId: 'bkt_1', objectKey: 'k' }
  const range = { headers: { range: 'bytes=0-1' }, responseBytesMax: 2 }
  expect(requestOf(readObject, { params, ...range })).toMatchObject({
    headers: { accept: '*/*', range: 'bytes=0-1' },
    reply: 'bytes',
    responseBytesMax: 2,
  })
  const content = { body: new Uint8Array(), contentType: 'image/png' }
  const stored = requestOf(putObject, { params, operationId: OPERATION_ID, ...content })
  expect(stored.contentType).toBe('image/png')
  expect(requestOf(followLogs, { params: SCOPE }).headers).toEqual({
    accept: 'application/x-ndjson',
  })
})

test('the compiler rejects what the operation does not declare, and what is missing', () => {
  const calls = [
    // @ts-expect-error: the parameter is missing.
    () => requestOf(revokeSession),
    // @ts-expect-error: the query has no such field.
    () => requestOf(listSessions, { query: { page: 1 } }),
    // @ts-expect-error: the target is missing.
    () => requestOf(listFunctions, { params: SCOPE }),
    // @ts-expect-error: the operation needs an Operation ID.
    () => requestOf(deleteObject, { params: { ...SCOPE, bucketId: 'b', objectKey: 'k' } }),
    // @ts-expect-error: the body has other fields.
    () => requestOf(createApplicationClient, { params: SCOPE, body: { title: 'web' } }),
  ]
  expect(calls).toHaveLength(5)
})
