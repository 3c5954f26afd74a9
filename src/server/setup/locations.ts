/** The paths and accounts of an installation by `setup`. */

/** The user of the service and its group, and its role in PostgreSQL. */
export const USER = 'svc'
export const SERVICE = 'svc-server'

export const SETTINGS_DIRECTORY = '/etc/svc'
export const ENVIRONMENT_FILE = `${SETTINGS_DIRECTORY}/environment`
export const DATABASE_URL_FILE = `${SETTINGS_DIRECTORY}/identity-database-url`
export const PEPPER_FILE = `${SETTINGS_DIRECTORY}/platform-identity-pepper`

export const HOME = '/var/lib/svc'
export const STATE = `${HOME}/state`
export const OWNER_CODE_FILE = `${STATE}/bootstrap/initial-owner.code`
export const PRODUCT = `${HOME}/product`
export const DESCRIPTOR_FILE = `${PRODUCT}/service.json`
/** A Workspace with example Functions. */
export const EXAMPLE = `${HOME}/example`

export const UNIT_FILE = '/etc/systemd/system/svc-server.service'
export const OPENRC_FILE = '/etc/init.d/svc-server'
export const PLIST_FILE = '/Library/LaunchDaemons/svc-server.plist'
/** The log of a service that has no journal. */
export const LOG_FILE = '/var/log/svc-server.log'
