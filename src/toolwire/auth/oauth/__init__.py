"""Logins: device and loopback flows, and tokens that are refreshed. Off until configured."""
