/** Variables and secrets. No response contains the value of a secret. */
import {
  type AppliedChange,
  type ConfigurationChange,
  type ConfigurationEntry,
  deleteConfiguration,
  readConfiguration,
  readConfigurationHistory,
  setConfiguration,
} from '../../product/configuration/configuration.ts'
import type {
  ChangeField,
  ConfigurationChanged,
  ConfigurationHistory,
  ConfigurationList,
  EntryField,
} from '../../wire/configuration.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import { configurationOperations } from '../../wire/operations/configuration.ts'
import { operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const configurationRoutes: readonly Route<ProductApp>[] = bind(configurationOperations, {
  listConfiguration({ app }) {
    const { revision, entries } = readConfiguration(app.product)
    const body: ConfigurationList = {
      version: 1,
      revision: String(revision),
      entries: entries.map(entryField),
    }
    return { status: 200, body }
  },

  listConfigurationChanges({ app, query }) {
    const { changes, next } = readConfigurationHistory(app.product, {
      after: query.after === undefined ? null : BigInt(query.after),
      limit: query.limit ?? PAGE_DEFAULT,
    })
    const body: ConfigurationHistory = {
      version: 1,
      entries: changes.map(changeField),
      next: next === null ? null : String(next),
    }
    return { status: 200, body }
  },

  setConfiguration({ app, actor, params, operationId, body: asked, requestId }) {
    const changed = setConfiguration(app.product, actor, {
      operationId,
      name: params.name,
      expectedRevision: BigInt(asked.expectedRevision),
      kind: asked.kind,
      value: asked.value,
      changedAtMicros: BigInt(asked.changedAtMicros),
      requestId,
    })
    return { status: 200, body: changedBody(changed) }
  },

  deleteConfiguration({ app, actor, params, operationId, body: asked, requestId }) {
    const changed = deleteConfiguration(app.product, actor, {
      operationId,
      name: params.name,
      expectedRevision: BigInt(asked.expectedRevision),
      changedAtMicros: BigInt(asked.changedAtMicros),
      requestId,
    })
    return { status: 200, body: changedBody(changed) }
  },
})

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

function changedBody({ change, operation }: AppliedChange): ConfigurationChanged {
  return { version: 1, change: changeField(change), operation: operationField(operation) }
}
