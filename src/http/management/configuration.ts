/** Variables and secrets. A secret comes in with one request and leaves with none. */
import { Fault } from '../../errors/fault.ts'
import {
  type Changed,
  type ConfigurationChange,
  type ConfigurationEntry,
  deleteConfiguration,
  readConfiguration,
  readConfigurationHistory,
  setConfiguration,
} from '../../product/configuration.ts'
import { isConfigurationName } from '../../value/configuration.ts'
import {
  type ChangeField,
  CONFIGURATION_BODY_BYTES_MAX,
  type ConfigurationChanged,
  ConfigurationDelete,
  type ConfigurationHistory,
  type ConfigurationList,
  ConfigurationSet,
  type EntryField,
  HISTORY_PAGE_DEFAULT,
  HISTORY_PAGE_MAX,
} from '../../wire/configuration.ts'
import { readPageLimit } from '../queries.ts'
import { environmentRoute, type Route } from '../route.ts'
import { operationField } from './operations.ts'
import type { ProductApp } from './product-app.ts'

const REVISION = /^[1-9][0-9]{0,15}$/

export const configurationRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/configuration',
    capability: 'configuration:read',
    handle({ app }) {
      const { revision, entries } = readConfiguration(app.product)
      const body: ConfigurationList = {
        version: 1,
        revision: String(revision),
        entries: entries.map(entryField),
      }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/configuration/history',
    capability: 'configuration:read',
    query: ['limit', 'after'],
    handle({ app, query }) {
      const { changes, next } = readConfigurationHistory(app.product, {
        after: readAfter(query.after),
        limit: readPageLimit(query.limit, { most: HISTORY_PAGE_MAX, usual: HISTORY_PAGE_DEFAULT }),
      })
      const body: ConfigurationHistory = {
        version: 1,
        entries: changes.map(changeField),
        next: next === null ? null : String(next),
      }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '/configuration/:name',
    capability: 'configuration:manage',
    operationId: 'required',
    body: { schema: ConfigurationSet, bytesMax: CONFIGURATION_BODY_BYTES_MAX },
    handle({ app, actor, params, operationId, body: asked, requestId }) {
      const changed = setConfiguration(app.product, actor, {
        operationId,
        name: readName(params.name),
        expectedRevision: BigInt(asked.expectedRevision),
        kind: asked.kind,
        value: asked.value,
        changedAtMicros: BigInt(asked.changedAtMicros),
        requestId,
      })
      return { status: 200, body: changedBody(changed) }
    },
  }),

  environmentRoute({
    method: 'DELETE',
    path: '/configuration/:name',
    capability: 'configuration:manage',
    operationId: 'required',
    body: { schema: ConfigurationDelete },
    handle({ app, actor, params, operationId, body: asked, requestId }) {
      const changed = deleteConfiguration(app.product, actor, {
        operationId,
        name: readName(params.name),
        expectedRevision: BigInt(asked.expectedRevision),
        changedAtMicros: BigInt(asked.changedAtMicros),
        requestId,
      })
      return { status: 200, body: changedBody(changed) }
    },
  }),
]

function readName(text: string): string {
  if (isConfigurationName(text)) return text
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'url', rule: 'a name such as API_KEY' }],
  })
}

function readAfter(text: string | undefined): bigint | null {
  if (text === undefined) return null
  if (REVISION.test(text)) return BigInt(text)
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'query.after', rule: 'a cursor of this list' }],
  })
}

function entryField({ content, ...entry }: ConfigurationEntry): EntryField {
  const fields = {
    name: entry.name,
    revision: String(entry.revision),
    createdAtMicros: String(entry.createdAtMicros),
    updatedAtMicros: String(entry.updatedAtMicros),
  }
  return content.kind === 'secret'
    ? { ...fields, kind: 'secret' }
    : { ...fields, kind: 'variable', value: content.value }
}

function changeField({ revision, changedAtMicros, ...change }: ConfigurationChange): ChangeField {
  return { ...change, revision: String(revision), changedAtMicros: String(changedAtMicros) }
}

function changedBody({ change, operation }: Changed): ConfigurationChanged {
  return { version: 1, change: changeField(change), operation: operationField(operation) }
}
