import { describe, expect, test } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { idMillis } from '../../value/ids.ts'
import { toolRequestOf } from './tool-arguments.ts'
import { findTool } from './tools.ts'

const system = realSystem()
const BUCKET = system.ids.make('bkt')
const DOCUMENT = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'

function requestOf(name: string, given: unknown) {
  return toolRequestOf(findTool(name)!, given, system)
}

function violationOf(name: string, given: unknown): string {
  try {
    requestOf(name, given)
    return ''
  } catch (error) {
    if (!isFault(error, 'PLATFORM_REQUEST_INVALID')) throw error
    return error.violations.map(({ path, rule }) => `${path}: ${rule}`).join()
  }
}

test('path parameters, fields of the query and the offset come from one object', () => {
  const given = { bucketId: BUCKET, limit: 5, prefix: 'a/', resultOffset: 30 }
  expect(requestOf('listObjects', given)).toEqual({
    input: { params: { bucketId: BUCKET }, query: { limit: '5', prefix: 'a/' } },
    operationId: null,
    offset: 30,
  })
  expect(requestOf('readStatus', undefined).input).toEqual({ params: {}, query: {} })
})

test('a change gets an Operation ID and its time, and a repeat makes an equal request', () => {
  const body = { target: 'channel:production', expectedRevision: '1' }
  const given = { table: 'notes', documentId: DOCUMENT, body }
  const first = requestOf('deleteDocument', given)
  const again = requestOf('deleteDocument', { ...given, operationId: first.operationId })
  expect(again).toEqual(first)
  const sent = JSON.parse(new TextDecoder().decode(first.input.body as Uint8Array))
  const changedAtMicros = String(BigInt(idMillis(first.operationId!)) * 1000n)
  expect(sent).toEqual({ ...body, changedAtMicros })
})

describe('arguments that the schema does not name are rejected', () => {
  test.each<[string, unknown, string]>([
    ['readStatus', [], 'arguments: an object'],
    ['readStatus', 'all', 'arguments: an object'],
    ['readStatus', { projectId: system.ids.make('prj') }, 'arguments: no field besides'],
    ['readStatus', JSON.parse('{"__proto__":{"x":1}}'), 'arguments: no field besides'],
    ['readStatus', { constructor: 1 }, 'arguments: no field besides'],
    ['readStatus', { body: {} }, 'arguments: no field besides'],
    ['readStatus', { resultOffset: -1 }, 'arguments.resultOffset: an integer'],
    ['readStatus', { resultOffset: '0' }, 'arguments.resultOffset: an integer'],
    ['readBucket', {}, 'arguments.bucketId: '],
    ['readBucket', { bucketId: '../../configuration' }, 'arguments.bucketId: '],
    ['readBucket', { bucketId: [BUCKET] }, 'arguments.bucketId: '],
    ['listDeliveries', { mount: '..' }, 'arguments.mount: '],
    ['listDeliveries', { mount: '%2e%2e' }, 'arguments.mount: '],
    ['deleteObject', { bucketId: BUCKET, objectKey: '..' }, 'arguments.objectKey: neither'],
    ['deleteObject', { bucketId: BUCKET, objectKey: '.' }, 'arguments.objectKey: neither'],
    ['listObjects', { bucketId: BUCKET, limit: 0 }, 'arguments.limit: '],
    ['listObjects', { bucketId: BUCKET, limit: 1.5 }, 'arguments.limit: '],
    ['listObjects', { bucketId: BUCKET, limit: ['1', '2'] }, 'arguments.limit: '],
    ['listObjects', { bucketId: BUCKET, prefix: 'x'.repeat(10_000) }, 'arguments.prefix: '],
    ['queryDocuments', {}, 'arguments.body: an object'],
    ['queryDocuments', { body: [] }, 'arguments.body: an object'],
    ['queryDocuments', { body: { target: 'x', table: 'notes', more: 1 } }, 'arguments.body: '],
    [
      'queryDocuments',
      { body: { target: 'channel:a', table: 'notes', after: 'x'.repeat(20_000) } },
      'arguments.body: at most',
    ],
    ['runCron', { cron: 'daily', operationId: 'mine' }, 'arguments.operationId: '],
  ])('%s %#', (name, given, expected) => {
    expect(violationOf(name, given)).toContain(expected)
  })
})
