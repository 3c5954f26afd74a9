/** Variables and secrets. No response contains the value of a secret. */
import {
  CONFIGURATION_BODY_BYTES_MAX,
  ConfigurationChanged,
  ConfigurationDelete,
  ConfigurationHistory,
  ConfigurationList,
  ConfigurationSet,
  HistoryQuery,
} from '../configuration.ts'
import { environmentOperation } from './operation.ts'

/** Bytes of 1,000 entries whose values were sent in bodies of at most 72 KiB. */
const RESPONSE_BYTES_MAX = 80 * 1024 * 1024

export const listConfiguration = environmentOperation({
  method: 'GET',
  path: '/configuration',
  name: 'listConfiguration',
  summary: 'Lists every variable and secret, without the values of secrets.',
  capability: 'configuration:read',
  replies: { 200: ConfigurationList },
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const listConfigurationChanges = environmentOperation({
  method: 'GET',
  path: '/configuration/history',
  name: 'listConfigurationChanges',
  summary: 'Lists changes of variables and secrets, newest first.',
  capability: 'configuration:read',
  query: HistoryQuery,
  replies: { 200: ConfigurationHistory },
})

export const setConfiguration = environmentOperation({
  method: 'PUT',
  path: '/configuration/:name',
  name: 'setConfiguration',
  summary: 'Sets a variable or a secret.',
  capability: 'configuration:manage',
  operationId: 'required',
  body: { schema: ConfigurationSet, bytesMax: CONFIGURATION_BODY_BYTES_MAX },
  replies: { 200: ConfigurationChanged },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
})

export const deleteConfiguration = environmentOperation({
  method: 'DELETE',
  path: '/configuration/:name',
  name: 'deleteConfiguration',
  summary: 'Removes a variable or a secret.',
  capability: 'configuration:manage',
  operationId: 'required',
  body: { schema: ConfigurationDelete },
  replies: { 200: ConfigurationChanged },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID'],
})

export const configurationOperations = {
  listConfiguration,
  listConfigurationChanges,
  setConfiguration,
  deleteConfiguration,
}
