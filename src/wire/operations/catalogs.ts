/** The catalogs of a target: its Functions and its tables. */
import { CatalogQuery, FunctionCatalog, TableCatalog } from '../catalogs.ts'
import { environmentOperation } from './operation.ts'

const RESPONSE_BYTES_MAX = 16 * 1024 * 1024

export const listFunctions = environmentOperation({
  method: 'GET',
  path: '/functions',
  name: 'listFunctions',
  summary: 'Lists the Functions of a target with their validators.',
  capability: 'releases:read',
  query: CatalogQuery,
  replies: { 200: FunctionCatalog },
  errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const listTables = environmentOperation({
  method: 'GET',
  path: '/schema/tables',
  name: 'listTables',
  summary: 'Lists the tables of a target with their fields and indexes.',
  capability: 'releases:read',
  query: CatalogQuery,
  replies: { 200: TableCatalog },
  errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const catalogOperations = { listFunctions, listTables }
