import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'
import { MANAGEMENT_OPERATIONS } from '../../wire/operations/management.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import { isSchema } from '../../wire/schema.ts'
import { AGENT_CAPABILITIES, ALLOWABLE } from './capabilities.ts'
import {
  BODY_FIELD,
  findTool,
  isOpen,
  listedTool,
  OFFSET_FIELD,
  TOOLS,
  type Tool,
} from './tools.ts'

const nameOf = ({ operation }: Tool) => operation.name
const held = (capabilities: readonly Capability[]) =>
  TOOLS.filter((tool) => isOpen(tool, new Set(capabilities)))

test('the usual session reads everything but documents', () => {
  expect(AGENT_CAPABILITIES).toEqual([
    'configuration:read',
    'credentials:read',
    'cron:read',
    'environments:read',
    'logs:read',
    'releases:read',
    'schedules:read',
    'storage:read',
    'usage:read',
  ])
})

test('every tool of the usual session is a GET and says that it changes nothing', () => {
  const tools = held(AGENT_CAPABILITIES)
  expect(tools.length).toBeGreaterThan(30)
  for (const tool of tools) {
    expect([nameOf(tool), tool.operation.method]).toEqual([nameOf(tool), 'GET'])
    expect(tool.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false })
  }
})

test('no tool is public, answers with a credential or with bytes, or follows a stream', () => {
  const names = TOOLS.map(nameOf)
  for (const name of [
    'exchangeCode',
    'refreshSession',
    'revokeSession',
    'deriveSession',
    'reconcileGrants',
    'issueInvitation',
    'createCredential',
    'rotateCredential',
    'revealKey',
    'issueStorageKey',
    'rotateStorageKey',
    'readObject',
    'putObject',
    'readBackupContent',
    'publishWorkspace',
    'followLogs',
  ]) {
    expect(MANAGEMENT_OPERATIONS.map((operation) => operation.name)).toContain(name)
    expect(names).not.toContain(name)
  }
})

test('no response of a tool has a field that is a secret', () => {
  const hasSecret = ({ replies }: ManagementOperation) =>
    Object.values(replies).some(
      (reply) => isSchema(reply) && JSON.stringify(jsonSchemaOf(reply)).includes('"password"'),
    )
  const withSecrets = MANAGEMENT_OPERATIONS.filter(hasSecret)
  expect(withSecrets.map(({ name }) => name)).toContain('createCredential')
  const tools = TOOLS.filter(({ operation }) => withSecrets.includes(operation))
  expect(tools.map(nameOf)).toEqual([])
})

test('a capability opens its tools and no others', () => {
  const added = held([...AGENT_CAPABILITIES, 'data:read']).filter(
    (tool) => !held(AGENT_CAPABILITIES).includes(tool),
  )
  expect(added.map(nameOf)).toEqual(['queryDocuments', 'readDocument'])
  expect(held([]).map(nameOf)).toEqual(['readSelf', 'listSessions', 'listResources'])
})

test('every capability that a person can add opens a tool', () => {
  expect(ALLOWABLE).toContain('data:write')
  for (const capability of ALLOWABLE) {
    if (capability === 'functions:invoke') continue
    expect([capability, TOOLS.some((tool) => tool.capability === capability)]).toEqual([
      capability,
      true,
    ])
  }
  const never = CAPABILITIES.filter(
    (each) => !ALLOWABLE.includes(each) && !AGENT_CAPABILITIES.includes(each),
  )
  expect(never).toEqual(['logs:follow', 'operators:manage'])
})

test('hints say what changes, what removes and what may be repeated', () => {
  const hints = (name: string) => findTool(name)!.annotations
  expect(hints('queryDocuments')).toMatchObject({ readOnlyHint: true, idempotentHint: true })
  expect(hints('insertDocument')).toMatchObject({ readOnlyHint: false, destructiveHint: false })
  expect(hints('deleteDocument')).toMatchObject({ destructiveHint: true, idempotentHint: true })
  expect(hints('promoteRelease')).toMatchObject({ destructiveHint: true, idempotentHint: false })
})

test('names of properties of every object are no tools', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
    expect(findTool(name)).toBeNull()
  }
})

test('the schema of each tool is a JSON Schema whose names do not collide', {
  tags: ['slow'],
}, () => {
  const ajv = new Ajv2020({ strict: false, formats: { password: true } })
  for (const tool of TOOLS) {
    const { name, inputSchema, description } = listedTool(tool)
    expect(name).toMatch(/^[A-Za-z][A-Za-z0-9]{1,63}$/)
    expect(description.length).toBeLessThan(300)
    expect(() => ajv.compile(inputSchema)).not.toThrow()
    const properties = Object.keys(inputSchema.properties as object)
    const { operation, parameters, body, annotations } = tool
    const query = Object.keys(operation.query.definition as object)
    const expected =
      parameters.length +
      query.length +
      (body === null ? 0 : 1) +
      (operation.operationId === 'none' ? 0 : 1) +
      (annotations.readOnlyHint ? 1 : 0)
    expect([name, properties.length]).toEqual([name, expected])
    expect(properties).not.toContain('projectId')
    expect(properties).not.toContain('environmentId')
  }
})

test('the schema of a change needs the body, but no time, which is filled in', () => {
  const { inputSchema } = listedTool(findTool('deleteDocument')!)
  expect(inputSchema.required).toEqual(['table', 'documentId', BODY_FIELD])
  const { body } = inputSchema.properties as { body: { required: string[] } }
  expect(body.required.toSorted()).toEqual(['expectedRevision', 'target'])
  expect(Object.keys(inputSchema.properties as object)).not.toContain(OFFSET_FIELD)
})
