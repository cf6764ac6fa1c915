// SPDX-License-Identifier: GPL-2.0
/* The PCI device: probe and removal. */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "engine.h"

unsigned int cle_reset_ms = 50;
module_param_named(reset_ms, cle_reset_ms, uint, 0644);
MODULE_PARM_DESC(reset_ms, "milliseconds for the engine to answer a reset (default 50)");

/* Of what the device can do: what this driver has operations for. */
#define CLE_OFFERED	(BIT_ULL(CL_ECB_AES) | BIT_ULL(CL_CBC_AES) | BIT_ULL(CL_CTR_AES) |	\
			 BIT_ULL(CL_XTS_AES) | BIT_ULL(CL_GCM_AES) |		\
			 BIT_ULL(CL_RFC4106_GCM_AES) | BIT_ULL(CL_AUTHENC_SHA256_CBC_AES))

/* The device may write its registers at any time: each is read once, and checked. */
static int cle_read_rules(struct cle_device *dev, resource_size_t len)
{
	struct device *parent = &dev->pdev->dev;
	struct cl_device *common = &dev->common;
	u32 unit;

	if (readq(dev->bar + CLE_REG_MAGIC) != CLE_MAGIC)
		return -ENODEV;		/* another use of ivshmem */
	common->features = readq(dev->bar + CLE_REG_FEATURES) & CLE_OFFERED;
	dev->ring = readl(dev->bar + CLE_REG_RING);
	dev->alignment = readl(dev->bar + CLE_REG_ALIGNMENT);
	dev->block = readl(dev->bar + CLE_REG_BLOCK);
	dev->segment = readl(dev->bar + CLE_REG_MAX_SEGMENT);
	common->max_request = readl(dev->bar + CLE_REG_MAX_REQUEST);
	common->sessions = min(readl(dev->bar + CLE_REG_SESSIONS), 65536U);
	common->key_bits = readl(dev->bar + CLE_REG_KEY_BITS);
	if (!is_power_of_2(dev->ring) || dev->ring < 8 || dev->ring > CLE_RING_MAX ||
	    CLE_REGISTERS + 2 * dev->ring * CLE_ENTRY + dev->ring / 2 * CLE_SLOT > len ||
	    !is_power_of_2(dev->alignment) || dev->alignment > PAGE_SIZE ||
	    !dev->block || dev->block > PAGE_SIZE || !common->sessions) {
		dev_err(parent, "the device's rules make no sense\n");
		return -EINVAL;
	}
	/* Pieces that are cut by the driver end where the next may begin. */
	unit = max3(dev->alignment, dev->block, (u32)AES_BLOCK_SIZE);
	if (unit % dev->alignment || unit % dev->block)
		unit = dev->alignment * dev->block;
	dev->segment = min(dev->segment, 1U << 30) / unit * unit;
	if (!dev->segment) {
		dev_err(parent, "the device's pieces are too short\n");
		return -EINVAL;
	}
	return 0;
}

static int cle_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct device *parent = &pdev->dev;
	struct cle_device *dev;
	int ret;

	dev = devm_kzalloc(parent, sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	pci_set_drvdata(pdev, dev);
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	if (pci_resource_len(pdev, 0) < 16 || pci_resource_len(pdev, 2) < CLE_REGISTERS)
		return -ENODEV;
	ret = pcim_iomap_regions(pdev, BIT(0) | BIT(2), CL_NAME);
	if (ret)
		return ret;
	dev->doorbell = pcim_iomap_table(pdev)[0] + CLE_DOORBELL;
	dev->bar = pcim_iomap_table(pdev)[2];
	ret = cle_read_rules(dev, pci_resource_len(pdev, 2));
	if (ret)
		return ret;
	/* The highest bit tells addresses of the bus from offsets in the BAR. */
	ret = dma_set_mask_and_coherent(parent, DMA_BIT_MASK(62));
	if (ret)
		return ret;
	ret = cle_ring_init(dev, clamp(cl_depth, 2U, dev->ring / 4));
	if (ret)
		return ret;

	pci_set_master(pdev);
	ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (ret < 0)
		goto err_master;
	dev->irq = pci_irq_vector(pdev, 0);
	ret = request_irq(dev->irq, cle_interrupt, 0, CL_NAME, dev);
	if (ret)
		goto err_vectors;
	ret = cl_start(&dev->common);
	if (ret) {
		dev_err(parent, "the device does not answer a reset\n");
		goto err_irq;
	}

	ret = cl_activate(&dev->common);
	if (ret)
		goto err_irq;
	dev_info(parent, "engine with %u requests of %u bytes at most\n", dev->common.depth,
		 dev->common.max_request);
	return 0;

err_irq:
	cl_stop(&dev->common);
	free_irq(dev->irq, dev);
	tasklet_kill(&dev->common.tasklet);
err_vectors:
	pci_free_irq_vectors(pdev);
err_master:
	pci_clear_master(pdev);
	destroy_workqueue(dev->common.workqueue);
	return ret;
}

static void cle_remove(struct pci_dev *pdev)
{
	struct cle_device *dev = pci_get_drvdata(pdev);

	cl_deactivate(&dev->common);
	cl_stop(&dev->common);
	free_irq(dev->irq, dev);
	tasklet_kill(&dev->common.tasklet);
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
	destroy_workqueue(dev->common.workqueue);
}

static int cle_suspend(struct device *parent)
{
	struct cle_device *dev = pci_get_drvdata(to_pci_dev(parent));

	cl_sleep(&dev->common);
	return 0;
}

static int cle_resume(struct device *parent)
{
	struct cle_device *dev = pci_get_drvdata(to_pci_dev(parent));

	cl_wake(&dev->common);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(cle_pm, cle_suspend, cle_resume);

static const struct pci_device_id cle_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },	/* ivshmem */
	{ }
};
MODULE_DEVICE_TABLE(pci, cle_ids);

static struct pci_driver cle_driver = {
	.name = CL_NAME,
	.id_table = cle_ids,
	.probe = cle_probe,
	.remove = cle_remove,
	.driver.pm = pm_sleep_ptr(&cle_pm),
};

static int __init cle_init(void)
{
	int ret;

	cl_stats_init();
	ret = pci_register_driver(&cle_driver);
	if (ret)
		cl_stats_exit();
	return ret;
}

static void __exit cle_exit(void)
{
	pci_unregister_driver(&cle_driver);
	cl_unregister_algs();
	cl_stats_exit();
}

module_init(cle_init);
module_exit(cle_exit);
MODULE_DESCRIPTION("Cipherlane: crypto engine with descriptor rings");
MODULE_AUTHOR("Cipherlane");
MODULE_LICENSE("GPL");
MODULE_ALIAS_CRYPTO("cbc-aes-cipherlane");
